/*
 * Start, the loop over the rows, and their classes on the semihosting console: what all programs in C share.
 * Between the two markers of tests/plugin/insncount.c stands one call of the engine, and one more of pool() where it averages.
 */
#include <stdint.h>
#include "engine.h"

/* The runner puts the number of rows here, and the rows behind it. The engine's input is further on, so it counts for
 * nobody. */
#define COUNT (*(const volatile uint32_t *)0x21000000u)
#define ROWS ((const uint8_t *)0x21000010u)
#define INPUT ((void *)0x21e00000u)
#define POOLED ((uint8_t *)0x21f00000u)

extern uint32_t _stack_start, _data, _data_end, _data_load, _bss, _bss_end;

static inline int semihost(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void ends(int status)
{
    const uint32_t block[2] = {0x20026, (uint32_t)status};
    for (;;)
        semihost(0x20, block);
}

static void fault(void)
{
    ends(1);
}

static void rows(void)
{
    const uint32_t count = COUNT;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *row = ROWS + i * PIXELS;
        if (INPUTS != PIXELS) {
            __asm__ volatile("mov r9, r9" ::: "memory");
            pool(row, POOLED);
            __asm__ volatile("mov r10, r10" ::: "memory");
            row = POOLED;
        }
        prepare(row, INPUT);
        __asm__ volatile("mov r9, r9" ::: "memory");
        const int class = predict(INPUT);
        __asm__ volatile("mov r10, r10" ::: "memory");
        const char digit = (char)('0' + class);
        semihost(0x03, &digit);
    }
    ends(0);
}

void reset(void)
{
    /* The float unit is off after reset. */
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20;
    __asm__ volatile("dsb; isb" ::: "memory");
    const uint32_t *load = &_data_load;
    for (uint32_t *to = &_data; to < &_data_end; to++)
        *to = *load++;
    for (uint32_t *to = &_bss; to < &_bss_end; to++)
        *to = 0;
    rows();
}

__attribute__((section(".vector_table"), used)) static const void *const vectors[16] = {
    &_stack_start, (const void *)reset, (const void *)fault, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault,
};
