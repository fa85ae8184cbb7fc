/* Test vectors of pendulum_v1.c. To build and run them:
 *
 *     cc -std=c99 -Wall -Wextra -Wpedantic -Werror -O2 pendulum_v1.c main.c -lm && ./a.out
 */
#include "pendulum_v1.h"

#include <math.h>
#include <stdio.h>

#define FEATURES PENDULUM_V1_FEATURES
#define ACTIONS PENDULUM_V1_ACTIONS
#define VECTORS 28
#define TOLERANCE 1e-05

static const struct {
    float observation[FEATURES];
    double action[ACTIONS];
} vectors[VECTORS] = {
    {
        {0.0f, 0.0f, 0.0f},
        {-0.6694614919513409,},
    },
    {
        {0.12573022f, -0.13210486f, 0.64042264f},
        {0.1254302345636436,},
    },
    {
        {0.104900114f, -0.5356694f, 0.36159506f},
        {-0.36946525418456216,},
    },
    {
        {1.304f, 0.94708097f, -0.70373523f},
        {0.4539220415600711,},
    },
    {
        {0.7662671f, 0.45456752f, -0.090295166f},
        {-0.4563336157350143,},
    },
    {
        {0.18275477f, -0.439398f, 0.29242575f},
        {-0.46685538657310716,},
    },
    {
        {0.104900114f, -0.5356694f, 0.36159506f},
        {-0.36946525418456216,},
    },
    {
        {1.3007734f, 0.9441256f, -0.7000543f},
        {0.4536365050040082,},
    },
    {
        {0.12275994f, -0.18965143f, 0.600663f},
        {0.05692400928238586,},
    },
    {
        {0.10559971f, -0.5221154f, 0.37095964f},
        {-0.3536259425905769,},
    },
    {
        {0.44426906f, 0.15964715f, 0.27703688f},
        {-0.43820500454769595,},
    },
    {
        {1.0970303f, 0.7575159f, -0.46762633f},
        {0.32781508803619036,},
    },
    {
        {0.53430164f, 0.05244902f, -0.50969076f},
        {0.2380295057469164,},
    },
    {
        {1.5792366f, -0.8992203f, 1.0057521f},
        {0.28921468613575274,},
    },
    {
        {-0.83582723f, 0.45855126f, 0.78749496f},
        {0.3133214575549965,},
    },
    {
        {0.25868368f, -2.2350383f, 0.20591713f},
        {-0.6092249348986177,},
    },
    {
        {-0.52159184f, 0.490701f, 0.16448407f},
        {-0.5356257695003377,},
    },
    {
        {-0.17008871f, -0.5824612f, 0.8953797f},
        {0.41782591726323465,},
    },
    {
        {0.42930406f, 0.873041f, 0.33220488f},
        {-0.30155629719927113,},
    },
    {
        {-0.05757114f, 2.0853126f, 1.3444328f},
        {0.1765139363246856,},
    },
    {
        {1.0000001e+06f, -0.13210486f, -999999.4f},
        {0.0,},
    },
    {
        {-999998.7f, 1.00000094e+06f, -0.70373523f},
        {0.0,},
    },
    {
        {0.104900114f, -0.5356694f, 1.0000004e+06f},
        {0.0,},
    },
    {
        {1.304f, -999999.06f, 999999.3f},
        {0.0,},
    },
    {
        {-999999.9f, -1.00000056e+06f, 1.0000004e+06f},
        {0.0,},
    },
    {
        {0.104900114f, -1.00000056e+06f, -999999.6f},
        {0.0,},
    },
    {
        {1.304f, 1.00000094e+06f, -0.70373523f},
        {0.0,},
    },
    {
        {1.0000013e+06f, -999999.06f, -1.0000007e+06f},
        {0.0,},
    },
};

/* The action range. */
static const double range[ACTIONS] =
    {4.0,};

/* Features, one at a time, that are NaN or infinite, for which the action is not NaN. */
static int unnoticed(float value)
{
    float observation[FEATURES], action[ACTIONS];
    int i, j, count = 0;

    for (i = 0; i < FEATURES; i++) {
        for (j = 0; j < FEATURES; j++) {
            observation[j] = i == j ? value : vectors[0].observation[j];
        }
        pendulum_v1_act(observation, action);
        for (j = 0; j < ACTIONS; j++) {
            count += action[j] == action[j];
        }
    }
    return count;
}

int main(void)
{
    double largest = 0;
    int i, j, differ = 0;

    for (i = 0; i < VECTORS; i++) {
        float action[ACTIONS];
        int differs = 0;

        pendulum_v1_act(vectors[i].observation, action);
        for (j = 0; j < ACTIONS; j++) {
            const double error = fabs((double)action[j] - vectors[i].action[j]) / range[j];

            differs |= !(error <= TOLERANCE);
            largest = error > largest ? error : largest;
        }
        differ += differs;
    }
    if (differ > 0) {
        printf("%d of %d test vectors differ\n", differ, VECTORS);
        return 1;
    }
    if (unnoticed(NAN) + unnoticed(INFINITY) + unnoticed(-INFINITY) > 0) {
        printf("an observation that is not finite does not give NaN\n");
        return 1;
    }
    printf("%d test vectors agree, largest error %.1e of the action range\n", VECTORS, largest);
    return 0;
}
