/* What a program in this folder is: it brings a row of bytes to what its engine takes, which is not counted, and
 * classifies it. */
#ifndef ENGINE_H
#define ENGINE_H
#include <stdint.h>

void prepare(const uint8_t row[784], void *input);
int predict(const void *input);

#endif
