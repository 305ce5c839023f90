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

#ifdef __cplusplus
}
#endif

#endif
