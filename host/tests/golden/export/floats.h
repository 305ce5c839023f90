/*
 * A model of floats: 20 inputs, 1 output, 20 weights, checksum 1332d866.
 *
 * Exported by tamis: export it again rather than edit it.
 */
#ifndef TINY_H
#define TINY_H

#include <stdint.h>

/* Numbers in one input row. */
#define TINY_INPUTS 20
/* Numbers in one prediction. */
#define TINY_OUTPUTS 1
/* The least output that is class 1. */
#define TINY_THRESHOLD (-0.25f)

#ifdef __cplusplus
extern "C" {
#endif

/* The outputs on one row. */
void tiny_predict(const float x[TINY_INPUTS], float y[TINY_OUTPUTS]);

/* The class of one row. */
uint32_t tiny_classify(const float x[TINY_INPUTS]);

#ifdef __cplusplus
}
#endif

#endif
