/* pendulum_v1.c: a policy as C99. It allocates nothing and calls nothing but expf.
 *
 * task     Pendulum-v1
 * learned  moie, seed 1, 256 steps, 19 parameters
 * policy   sha256 9f32662f86e4afb96cb224abaf2582fe20b6768e7a4b82edaf0406a8e5171f56
 * written  by moie 0.1.0, in single precision
 *
 * The action is the average of all experts' actions and of the default action, by strength:
 *     strength = weight * exp(-sum over features of ((observation - prototype) / close)^2)
 * for an expert, and 1 for the default. Then it is clipped to the action space.
 * Leads: share of the states of its last training batch in which an expert was the strongest;
 * membership: its mean share of the strength there.
 */
#include "pendulum_v1.h"

#include <float.h>
#include <math.h>

#define FEATURES PENDULUM_V1_FEATURES
#define ACTIONS PENDULUM_V1_ACTIONS
#define LARGEST FLT_MAX

#define EXPERTS 3

/* Any one of these differences alone brings an expert's strength down to 37%. */
static const float close[FEATURES] = {
    1.4142135f,   /* cos of angle */
    2.828427f,    /* sin of angle */
    0.47140452f,  /* turning speed */
};

static const struct {
    float prototype[FEATURES];
    float weight;
    float action[ACTIONS];
} experts[EXPERTS] = {
    /* expert 0: leads 33%, membership 25.0%, from iteration 3, episode 1, step 4 */
    {
        .prototype = {
            0.12573022f,   /* cos of angle */
            -0.13210486f,  /* sin of angle */
            0.64042264f,   /* turning speed */
        },
        .weight = 2.8701448f,
        .action = {
            1.429617f,  /* torque */
        },
    },
    /* expert 1: leads 33%, membership 25.0%, not visited yet */
    {
        .prototype = {
            0.104900114f,  /* cos of angle */
            -0.5356694f,   /* sin of angle */
            0.36159506f,   /* turning speed */
        },
        .weight = 2.6317072f,
        .action = {
            -1.8656577f,  /* torque */
        },
    },
    /* expert 2: leads 33%, membership 25.0%, from iteration 0, episode 0, step 0 */
    {
        .prototype = {
            1.304f,        /* cos of angle */
            0.94708097f,   /* sin of angle */
            -0.70373523f,  /* turning speed */
        },
        .weight = 1.005477f,
        .action = {
            0.9186218f,  /* torque */
        },
    },
};

/* Where no prototype is near. */
static const float default_action[ACTIONS] = {
    0.0f,  /* torque */
};

static void mean_action(const float observation[FEATURES], float mean[ACTIONS])
{
    float total = 1;
    int i, k;

    for (i = 0; i < ACTIONS; i++) {
        mean[i] = default_action[i];
    }
    for (k = 0; k < EXPERTS; k++) {
        float distance = 0, strength;

        for (i = 0; i < FEATURES; i++) {
            const float difference = (observation[i] - experts[k].prototype[i]) / close[i];

            distance += difference * difference;
        }
        strength = experts[k].weight * expf(-distance);
        total += strength;
        for (i = 0; i < ACTIONS; i++) {
            mean[i] += strength * experts[k].action[i];
        }
    }
    for (i = 0; i < ACTIONS; i++) {
        mean[i] /= total;
    }
}

/* What actions are clipped to. */
static const float low[ACTIONS] = {
    -2.0f,  /* torque */
};
static const float high[ACTIONS] = {
    2.0f,  /* torque */
};

void pendulum_v1_act(const float observation[FEATURES], float action[ACTIONS])
{
    float mean[ACTIONS];
    int i, j;

    for (i = 0; i < FEATURES; i++) {
        /* NaN fails every comparison. */
        if (!(observation[i] >= -LARGEST && observation[i] <= LARGEST)) {
            for (j = 0; j < ACTIONS; j++) {
                action[j] = NAN;
            }
            return;
        }
    }
    mean_action(observation, mean);
    for (i = 0; i < ACTIONS; i++) {
        action[i] = mean[i] < low[i] ? low[i] : mean[i] > high[i] ? high[i] : (float)mean[i];
    }
}
