/*
 * A model of 8-bit integers: 300 inputs, 3 outputs, 18 weights, checksum edd2bf84.
 *
 * Exported by tamis: export it again rather than edit it.
 */
#ifndef TINY_H
#define TINY_H

#include <stdint.h>

/* Numbers in one input row. */
#define TINY_INPUTS 300
/* Numbers in one prediction. */
#define TINY_OUTPUTS 3
/* A byte q of an input stands for INPUT_SCALE * (q - INPUT_ZERO), an output y for OUTPUT_SCALE * y. */
#define TINY_INPUT_SCALE 0.5f
#define TINY_INPUT_ZERO 3
#define TINY_OUTPUT_SCALE 0.001f

#ifdef __cplusplus
extern "C" {
#endif

/* The outputs on one row. */
void tiny_predict(const uint8_t x[TINY_INPUTS], int32_t y[TINY_OUTPUTS]);

/* The class of one row. */
uint32_t tiny_classify(const uint8_t x[TINY_INPUTS]);

/* The byte of a reading of one input: rounded, halves away from 0, and cut to 0 to 255.
 * A byte q stands for scale * (q - zero). Readings of up to 24 bits are floats without rounding. */
static inline uint8_t tiny_quantize(uint32_t column, float reading)
{
    (void)column;
    float steps = reading / TINY_INPUT_SCALE;
    if (steps > -8388608.0f && steps < 8388608.0f) {
        const float whole = (float)(int32_t)steps;
        const float rest = steps - whole;
        steps = whole + (rest >= 0.5f ? 1.0f : rest <= -0.5f ? -1.0f : 0.0f);
    } else if (steps != steps) {
        steps = 0.0f;
    }
    steps += (float)TINY_INPUT_ZERO;
    return (uint8_t)(steps < 0.0f ? 0.0f : steps > 255.0f ? 255.0f : steps);
}

/* The bytes of one row of readings. */
static inline void tiny_quantize_input(const float x[TINY_INPUTS], uint8_t q[TINY_INPUTS])
{
    for (uint32_t k = 0; k < TINY_INPUTS; k++) {
        q[k] = tiny_quantize(k, x[k]);
    }
}

#ifdef __cplusplus
}
#endif

#endif
