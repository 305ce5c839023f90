/* What emlearn generates: LOADABLE is its default, a table of layers that eml_net.h walks; the other way is code for each
 * network. */
#include "engine.h"
#ifdef LOADABLE
#include "emlearn_loadable.h"
#else
#include "emlearn_inline.h"
#endif

void prepare(const uint8_t row[INPUTS], void *input)
{
    float *x = input;
    for (int i = 0; i < INPUTS; i++)
        x[i] = row[i] / 255.0f;
}

int predict(const void *input)
{
    return net_predict(input, INPUTS);
}
