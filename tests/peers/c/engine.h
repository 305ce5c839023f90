/* What a program in this folder is: it brings a row of bytes to what its engine takes, which is not counted, and
 * classifies it. INPUTS is 784, or 196 where pictures are averaged over 2x2 pixels before, which is counted. */
#ifndef ENGINE_H
#define ENGINE_H
#include <stdint.h>

enum { PIXELS = 784 };

void prepare(const uint8_t row[INPUTS], void *input);
int predict(const void *input);

static inline void pool(const uint8_t row[PIXELS], uint8_t *to)
{
    for (int i = 0; i < 14; i++)
        for (int j = 0; j < 14; j++) {
            const uint8_t *four = row + 56 * i + 2 * j;
            *to++ = (uint8_t)((four[0] + four[1] + four[28] + four[29] + 2) >> 2);
        }
}

#endif
