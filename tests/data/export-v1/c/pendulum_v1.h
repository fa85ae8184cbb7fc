/* pendulum_v1.h: the policy of pendulum_v1.c
 *
 * task     Pendulum-v1
 * policy   sha256 9f32662f86e4afb96cb224abaf2582fe20b6768e7a4b82edaf0406a8e5171f56
 */
#ifndef PENDULUM_V1_H
#define PENDULUM_V1_H

#ifdef __cplusplus
extern "C" {
#endif

#define PENDULUM_V1_FEATURES 3
#define PENDULUM_V1_ACTIONS 1

/* The action for an observation, both in the task's own units and each in an array of its own.
 *
 * observation
 *   0  cos of angle
 *   1  sin of angle
 *   2  turning speed
 * action
 *   0  torque, from -2.0 to 2.0
 *
 * If a number of the observation is NaN or infinite, every number of the action is NaN.
 */
void pendulum_v1_act(const float observation[PENDULUM_V1_FEATURES],
                     float action[PENDULUM_V1_ACTIONS]);

#ifdef __cplusplus
}
#endif

#endif
