/* The speed limit of `trace-memory bench signature`: one depth-3 update S <- S * exp(z), sizes known to the compiler.
   Words are stored newest letter slowest; runs of level 3 are padded to a cache line of 8 doubles, as in the product. */
#include <stdint.h>

#define WORDS (DIM * DIM)
#define RUN ((WORDS + 7) / 8 * 8)
#define LEVEL3 ((DIM + WORDS + 7) / 8 * 8)

/* values: LEVEL3 + DIM * RUN doubles; last, state: DIM doubles; all aligned to 64 bytes. */
void signature_update(double *restrict values, double *restrict last, const double *restrict state) {
    double z[DIM], first[DIM], second[RUN] __attribute__((aligned(64)));
    double *level1 = values, *level2 = values + DIM, *level3 = values + LEVEL3;
    for (int i = 0; i < DIM; i++) {
        z[i] = state[i] - last[i];
        last[i] = state[i];
        first[i] = level1[i] + z[i] / 3;
    }
    for (int k = 0; k < DIM; k++)
        for (int i = 0; i < DIM; i++) second[k * DIM + i] = level2[k * DIM + i] + z[k] / 2 * first[i];
    for (int k = 0; k < DIM; k++)
        for (int i = 0; i < WORDS; i++) level3[k * RUN + i] += z[k] * second[i];
    for (int i = 0; i < DIM; i++) first[i] = level1[i] + z[i] / 2;
    for (int k = 0; k < DIM; k++)
        for (int i = 0; i < DIM; i++) level2[k * DIM + i] += z[k] * first[i];
    for (int i = 0; i < DIM; i++) level1[i] += z[i];
}

/* states: (count, DIM). */
void signature_updates(double *values, double *last, const double *states, int64_t count) {
    for (int64_t t = 0; t < count; t++) signature_update(values, last, states + t * DIM);
}
