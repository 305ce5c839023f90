/* tamis export --format c */
#include "engine.h"
#include "tamis_int8.h"

void prepare(const uint8_t row[INPUTS], void *input)
{
    uint8_t *x = input;
    for (int i = 0; i < INPUTS; i++)
        x[i] = row[i];
}

int predict(const void *input)
{
    return (int)tamis_int8_classify(input);
}
