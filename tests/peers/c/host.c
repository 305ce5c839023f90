/* The same engine on the host: the classes of the rows of a file, as data.py writes it. */
#include <stdio.h>
#include "engine.h"

int main(int count, char **arguments)
{
    static uint8_t row[PIXELS], pooled[PIXELS / 4];
    static float input[INPUTS];
    uint32_t head[4];
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL || fread(head, sizeof head, 1, file) != 1)
        return 1;
    for (uint32_t i = 0; i < head[0]; i++) {
        if (fread(row, sizeof row, 1, file) != 1)
            return 1;
        if (INPUTS != PIXELS)
            pool(row, pooled);
        prepare(INPUTS == PIXELS ? row : pooled, input);
        putchar('0' + predict(input));
    }
    return 0;
}
