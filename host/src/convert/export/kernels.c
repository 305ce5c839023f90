/* The kernels of exported C, in the order in which they are written. A file gets those that its
   model needs: what follows the second line of slashes. */

//// alone
// Stands before the loops over weights: each is a function of its own, or what it holds in
// registers would lie on the stack of all the prediction; and its code is that of any model,
// which `tamis inspect` knows, not of the numbers of this one.
////
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define ALONE __attribute__((noipa))
#elif defined(__GNUC__)
#define ALONE __attribute__((noinline))
#else
#define ALONE
#endif

//// pair
// Index and weight.
////
struct pair {
    uint8_t at;
    int8_t weight;
};

//// zeros
// Sums that start at 0.
////
static void zeros(int32_t *sums, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        sums[j] = 0;
    }
}

//// start
// Sums that start at biases.
////
static void start(int32_t *sums, const int32_t *biases, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        sums[j] = biases[j];
    }
}

//// product
// One product.
////
static inline int32_t product(uint8_t x, int8_t weight)
{
    return (int32_t)x * (int32_t)weight;
}

//// blocks
// One window: fifteen pairs a turn, or as many as are left, by one jump, which passes empty runs
// by, too. A function of its own has all that its loop needs in registers.
////
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

//// dense
// All weights of all inputs.
////
ALONE static void dense(const uint8_t *x, uint32_t inputs, const int8_t *values, int32_t *sums, uint32_t outputs)
{
    for (uint32_t j = 0; j < outputs; j++) {
        int32_t sum = sums[j];
        for (uint32_t k = 0; k < inputs; k++) {
            sum += product(x[k], *values++);
        }
        sums[j] = sum;
    }
}

//// lowest
// The lowest bit that is 1.
////
static inline uint32_t lowest(uint32_t word)
{
#if defined(__GNUC__)
    return (uint32_t)__builtin_ctzl(word);
#else
    uint32_t k = 0;
    for (; (word & 1u) == 0; word >>= 1) {
        k++;
    }
    return k;
#endif
}

//// mask
// A bit for each weight that could be.
////
ALONE static void mask(const uint8_t *x, uint32_t width, const uint32_t *bits, const int8_t *values,
                       int32_t *sums, uint32_t outputs)
{
    for (uint32_t j = 0; j < outputs; j++) {
        int32_t sum = sums[j];
        for (uint32_t from = 0; from < width; from += 32) {
            for (uint32_t word = *bits++; word != 0; word &= word - 1) {
                sum += product(x[from + lowest(word)], *values++);
            }
        }
        sums[j] = sum;
    }
}

//// scaled
// A sum times a factor, rounded, halves up. Shifts of negative numbers are left to the compiler
// by C99, so they are avoided.
////
static inline int32_t scaled(int32_t sum, uint32_t factor)
{
    const int64_t exact = (int64_t)sum * (int64_t)((factor & 0xFFFFFFu) << 7);
    const uint32_t shift = (factor >> 24) - 25;
    const int32_t high = (int32_t)(exact < 0 ? ~(~exact >> 32) : exact >> 32) + ((int32_t)1 << (shift - 1));
    return high < 0 ? ~(~high >> shift) : high >> shift;
}

//// cut
// Sums to bytes: relu, and a cut at 255. `step` is 0 where all have one factor.
////
ALONE static void cut(const int32_t *sums, const uint32_t *factors, uint32_t step, uint8_t *bytes, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        const int32_t number = scaled(sums[j], factors[j * step]);
        bytes[j] = (uint8_t)(number < 0 ? 0 : number > 255 ? 255 : number);
    }
}

//// scale
// Outputs times factors.
////
static void scale(int32_t *sums, const uint32_t *factors, uint32_t step, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        sums[j] = scaled(sums[j], factors[j * step]);
    }
}

//// relu
// Outputs that are not negative.
////
static void relu(int32_t *sums, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        sums[j] = sums[j] < 0 ? 0 : sums[j];
    }
}

//// sum
// The scalar at the end.
////
static int32_t signed_sum(const uint32_t *signs, const uint8_t *x, uint32_t n)
{
    int32_t total = 0;
    for (uint32_t j = 0; j < n; j++) {
        const int32_t number = (int32_t)x[j];
        total += (signs[j / 32] >> (j % 32) & 1u) != 0 ? -number : number;
    }
    return total;
}

//// float_rows
// Rows of floats: product by product, in their order.
////
ALONE static void rows(const float *x, const uint16_t *counts, const uint16_t *columns, const float *values,
                       float *y, uint32_t outputs)
{
    for (uint32_t j = 0; j < outputs; j++) {
        float sum = 0.0f;
        for (uint32_t n = counts[j]; n > 0; n--) {
            sum += *values++ * x[*columns++];
        }
        y[j] = sum;
    }
}

//// float_biased_rows
// The same of a layer with biases, at which sums start.
////
ALONE static void biased_rows(const float *x, const uint16_t *counts, const uint16_t *columns,
                              const float *values, const float *biases, float *y, uint32_t outputs)
{
    for (uint32_t j = 0; j < outputs; j++) {
        float sum = biases[j];
        for (uint32_t n = counts[j]; n > 0; n--) {
            sum += *values++ * x[*columns++];
        }
        y[j] = sum;
    }
}

//// float_relu
// Outputs that are not negative; NaN stays NaN.
////
static void relu(float *y, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        y[j] = y[j] <= 0.0f ? 0.0f : y[j];
    }
}

//// float_sum
// The scalar at the end, of floats.
////
static float signed_sum(const uint32_t *signs, const float *x, uint32_t n)
{
    float total = 0.0f;
    for (uint32_t j = 0; j < n; j++) {
        total = (signs[j / 32] >> (j % 32) & 1u) != 0 ? total - x[j] : total + x[j];
    }
    return total;
}
