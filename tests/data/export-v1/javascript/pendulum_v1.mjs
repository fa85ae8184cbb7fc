// pendulum_v1.mjs: a policy as a JavaScript module.
//
// task     Pendulum-v1
// learned  moie, seed 1, 256 steps, 19 parameters
// policy   sha256 9f32662f86e4afb96cb224abaf2582fe20b6768e7a4b82edaf0406a8e5171f56
// written  by moie 0.1.0
//
// The action is the average of all experts' actions and of the default action, by strength:
//     strength = weight * exp(-sum over features of ((observation - prototype) / close)^2)
// for an expert, and 1 for the default. Then it is clipped to the action space.
// Leads: share of the states of its last training batch in which an expert was the strongest;
// membership: its mean share of the strength there.

const LARGEST = 1e+60;

// Any one of these differences alone brings an expert's strength down to 37%.
const CLOSE = [
  1.414213562373095,   // cos of angle
  2.82842712474619,    // sin of angle
  0.4714045207910316,  // turning speed
];
const EXPERTS = [
  // expert 0: leads 33%, membership 25.0%, from iteration 3, episode 1, step 4
  {
    prototype: [
      0.1257302210933933,   // cos of angle
      -0.1321048632913019,  // sin of angle
      0.6404226504432821,   // turning speed
    ],
    weight: 2.8701448475755367,
    action: [
      1.4296171063502774,  // torque
    ],
  },
  // expert 1: leads 33%, membership 25.0%, not visited yet
  {
    prototype: [
      0.10490011715303971,  // cos of angle
      -0.535669373161111,   // sin of angle
      0.36159505490948474,  // turning speed
    ],
    weight: 2.6317071082430643,
    action: [
      -1.8656576987781426,  // torque
    ],
  },
  // expert 2: leads 33%, membership 25.0%, from iteration 0, episode 0, step 0
  {
    prototype: [
      1.3040000451301372,   // cos of angle
      0.9470809631292422,   // sin of angle
      -0.7037352358069926,  // turning speed
    ],
    weight: 1.0054770003402962,
    action: [
      0.9186217857197763,  // torque
    ],
  },
];
// Where no prototype is near.
const DEFAULT = [
  0.0,  // torque
];

function meanAction(observation) {
  let total = 1;
  const means = DEFAULT.slice();
  for (const { prototype, weight, action } of EXPERTS) {
    let distance = 0;
    for (let i = 0; i < observation.length; i++) {
      const difference = (observation[i] - prototype[i]) / CLOSE[i];
      distance += difference * difference;
    }
    const strength = weight * Math.exp(-distance);
    total += strength;
    for (let i = 0; i < means.length; i++) {
      means[i] += strength * action[i];
    }
  }
  return means.map((mean) => mean / total);
}

// What actions are clipped to.
const LOW = [
  -2.0,  // torque
];
const HIGH = [
  2.0,  // torque
];

/** The action for an observation, as arrays of numbers in the task's own units; NaN in every
 * component if one of the observation is not a number, is infinite or beyond LARGEST. */
export function act(observation) {
  const values = Array.from(observation, (value) => (typeof value === "number" ? value : NaN));
  if (values.length !== 3) {
    throw new RangeError(`observation has ${values.length} numbers, expected 3`);
  }
  if (!values.every((value) => Math.abs(value) <= LARGEST)) {
    return LOW.map(() => NaN);
  }
  return meanAction(values).map((mean, i) => Math.min(Math.max(mean, LOW[i]), HIGH[i]));
}
