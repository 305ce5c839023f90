/* What the programs of C have in common that `cargo ci` builds to measure an exported model: start-up code, one prediction, and an
 * end with what the outputs add up to. */
#include <stdint.h>
#ifdef MODEL
#include "model.h"
#define N MODEL_OUTPUTS
#if FLOATS
typedef float row_t;
typedef float out_t;
#else
typedef uint8_t row_t;
typedef int32_t out_t;
#endif
static const row_t ROW[MODEL_INPUTS] = {1};
#else
#define N 16
typedef int32_t out_t;
static const out_t NUMBERS[N] = {1};
#endif

#define USED __attribute__((used, noinline, noreturn))

/* Ends the emulation. */
static void end(uint32_t status)
{
    static const uint32_t REASON = 0x20026; /* The application has ended. */
    uint32_t block[2] = {REASON, status};
#if defined(__riscv)
    register uint32_t a0 __asm__("a0") = 0x20;
    register void *a1 __asm__("a1") = block;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
#else
    register uint32_t r0 __asm__("r0") = 0x20;
    register void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
#endif
}

USED void run(void)
{
    union { out_t y; uint32_t bits; } word;
    uint32_t sum = 0;
#ifdef MODEL
    out_t y[N];
    const row_t *volatile row = ROW;
    model_predict(row, y);
#else
    const out_t *volatile numbers = NUMBERS;
    const out_t *y = numbers;
#endif
    for (uint32_t k = 0; k < N; k++) {
        word.y = y[k];
        sum += word.bits;
        __asm__ volatile("" ::: "memory");
    }
    end(sum);
    for (;;) {
    }
}

extern uint32_t _stack_start;
#if defined(__riscv)
__attribute__((naked, section(".start"), used)) void start(void)
{
    __asm__ volatile("la sp, _stack_start\nj run");
}
#else
void start(void);
__attribute__((section(".start"), used)) static const void *const VECTORS[16] = {&_stack_start, (void *)start};
void start(void)
{
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20;
    __asm__ volatile("dsb\nisb");
#endif
    run();
}
#endif
