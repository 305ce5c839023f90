/*
 * A model of 8-bit integers: 300 inputs, 3 outputs, 18 weights, checksum edd2bf84.
 *
 * Exported by tamis: export it again rather than edit it. C99, without libraries and without a heap.
 */
#include "tiny.h"

struct pair {
    uint8_t at;
    int8_t weight;
};

static const uint8_t counts_1[8] = {
    2, 3, 3, 2, 1, 0, 0, 1,
};
static const struct pair pairs_1[12] = {
    {0, -71}, {199, -36}, {13, 31}, {109, 111}, {233, -45}, {32, -113}, {171, 117}, {248, 21},
    {10, 96}, {161, -6}, {255, -71}, {241, -7},
};
static const uint32_t factors_1[1] = {
    551466520u,
};
static const uint8_t counts_2[3] = {
    2, 2, 2,
};
static const struct pair pairs_2[6] = {
    {0, -25}, {3, -108}, {1, 89}, {3, -60}, {1, 70}, {3, -39},
};

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define ALONE __attribute__((noipa))
#elif defined(__GNUC__)
#define ALONE __attribute__((noinline))
#else
#define ALONE
#endif

static void zeros(int32_t *sums, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        sums[j] = 0;
    }
}

static inline int32_t product(uint8_t x, int8_t weight)
{
    return (int32_t)x * (int32_t)weight;
}

ALONE static const struct pair *window(const uint8_t *x, const uint8_t *counts, const struct pair *pairs,
                                       int32_t *sums, uint32_t outputs)
{
    for (uint32_t j = 0; j < outputs; j++) {
        uint32_t n = counts[j];
        int32_t sum = sums[j];
        for (;; n -= 15, pairs += 15) {
            switch (n) {
            default: sum += product(x[pairs[14].at], pairs[14].weight); /* fall through */
            case 14: sum += product(x[pairs[13].at], pairs[13].weight); /* fall through */
            case 13: sum += product(x[pairs[12].at], pairs[12].weight); /* fall through */
            case 12: sum += product(x[pairs[11].at], pairs[11].weight); /* fall through */
            case 11: sum += product(x[pairs[10].at], pairs[10].weight); /* fall through */
            case 10: sum += product(x[pairs[9].at], pairs[9].weight); /* fall through */
            case 9: sum += product(x[pairs[8].at], pairs[8].weight); /* fall through */
            case 8: sum += product(x[pairs[7].at], pairs[7].weight); /* fall through */
            case 7: sum += product(x[pairs[6].at], pairs[6].weight); /* fall through */
            case 6: sum += product(x[pairs[5].at], pairs[5].weight); /* fall through */
            case 5: sum += product(x[pairs[4].at], pairs[4].weight); /* fall through */
            case 4: sum += product(x[pairs[3].at], pairs[3].weight); /* fall through */
            case 3: sum += product(x[pairs[2].at], pairs[2].weight); /* fall through */
            case 2: sum += product(x[pairs[1].at], pairs[1].weight); /* fall through */
            case 1: sum += product(x[pairs[0].at], pairs[0].weight); /* fall through */
            case 0: break;
            }
            if (n <= 15) {
                break;
            }
        }
        pairs += n;
        sums[j] = sum;
    }
    return pairs;
}

/* Windows of 256 columns; the last one ends where the row does. */
static void blocks(const uint8_t *x, uint32_t inputs, const uint8_t *counts, const struct pair *pairs,
                   int32_t *sums, uint32_t outputs)
{
    const uint32_t last = inputs > 256 ? inputs - 256 : 0;
    for (uint32_t from = 0; from < inputs; from += 256, counts += outputs) {
        pairs = window(x + (from < last ? from : last), counts, pairs, sums, outputs);
    }
}

static inline int32_t scaled(int32_t sum, uint32_t factor)
{
    const int64_t exact = (int64_t)sum * (int64_t)((factor & 0xFFFFFFu) << 7);
    const uint32_t shift = (factor >> 24) - 25;
    const int32_t high = (int32_t)(exact < 0 ? ~(~exact >> 32) : exact >> 32) + ((int32_t)1 << (shift - 1));
    return high < 0 ? ~(~high >> shift) : high >> shift;
}

ALONE static void cut(const int32_t *sums, const uint32_t *factors, uint32_t step, uint8_t *bytes, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        const int32_t number = scaled(sums[j], factors[j * step]);
        bytes[j] = (uint8_t)(number < 0 ? 0 : number > 255 ? 255 : number);
    }
}

void tiny_predict(const uint8_t x[TINY_INPUTS], int32_t y[TINY_OUTPUTS])
{
    int32_t sums[4];
    uint8_t bytes[4];
    zeros(sums, 4);
    blocks(x, 300, counts_1, pairs_1, sums, 4);
    cut(sums, factors_1, 0, bytes, 4);
    zeros(y, 3);
    blocks(bytes, 4, counts_2, pairs_2, y, 3);
}

uint32_t tiny_classify(const uint8_t x[TINY_INPUTS])
{
    int32_t y[TINY_OUTPUTS];
    tiny_predict(x, y);
    uint32_t best = 0;
    for (uint32_t k = 1; k < TINY_OUTPUTS; k++) {
        best = y[k] > y[best] ? k : best;
    }
    return best;
}
