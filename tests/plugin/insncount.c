/*
 * QEMU plugin: exact instruction, load and store counts of marked regions of a guest program.
 *
 * A region starts behind one marker instruction and ends before another; the firmware's meter.rs places them and
 * says what they are. Regions nest. When one ends, a line goes to the file named by the argument `out`:
 *
 *     insns=DECIMAL loads=DECIMAL stores=DECIMAL
 *
 * When the program ends, a line says how many instructions it ran in all. With the argument `floor`, an address, another
 * follows: the lowest address from there on that was stored to, which is how far the stack grew down where `floor` is the
 * end of static data.
 *
 *     total=DECIMAL
 *     lowest=DECIMAL
 *
 * With the argument `most`, a number of instructions, a program that runs more is stopped, as is one that runs none for
 * `naps` (600) naps of 0.1 s. A thread that naps looks after that, so a busy machine makes both come later, never sooner.
 *
 *     stopped=REASON
 *
 * Markers are not counted, nor are those of inner regions. Loads and stores are accesses, so an instruction that
 * moves four registers counts four. One guest processor is assumed.
 *
 *     cc -O2 -pthread -fPIC -shared -o insncount.so insncount.c
 *     qemu-system-arm ... -plugin ./insncount.so,out=counts.txt
 *
 * QEMU's header is not packaged everywhere, so the part of its plugin interface (version 1) that is used here is
 * declared below.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

/* The first members of qemu_info_t; the rest is not needed. */
struct guest_info {
    const char *target_name;
};

enum { NO_REGISTERS = 0 };
enum { INLINE_ADD_U64 = 0 };
enum { READS_AND_WRITES = 3 };

typedef void (*on_translation)(plugin_id, struct qemu_plugin_tb *);
typedef void (*on_execution)(unsigned cpu, void *data);
typedef void (*on_end)(plugin_id, void *data);
typedef void (*on_access)(unsigned cpu, uint32_t access, uint64_t address, void *data);

void qemu_plugin_register_atexit_cb(plugin_id, on_end, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, on_translation);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, on_execution, int registers, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int operation, void *counter, uint64_t by);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, on_access, int registers, int which, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
bool qemu_plugin_mem_is_store(uint32_t access);

struct counts {
    uint64_t insns, loads, stores;
};

/* An instruction that marks a boundary, as it stands in guest memory. */
struct marker {
    size_t size;
    uint8_t code[4];
};

struct markers {
    const char *guest;
    struct marker start, stop;
};

static const struct markers known[] = {
    /* mov r9, r9; mov r10, r10 */
    {"arm", {2, {0xc9, 0x46}}, {2, {0xd2, 0x46}}},
    /* slti x0, x9, 9; slti x0, x10, 10 */
    {"riscv32", {4, {0x13, 0xa0, 0x94, 0x00}}, {4, {0x13, 0x20, 0xa5, 0x00}}},
};

enum { DEEPEST = 16 };

static const struct markers *markers;
static struct counts total;            /* since the start of the program, markers left out */
static struct counts began[DEEPEST];   /* totals when each open region started */
static unsigned depth;
static uint64_t floor_address, lowest = UINT64_MAX;
static uint64_t most, naps = 600;
static FILE *out;

static void region_starts(unsigned cpu, void *data)
{
    (void)cpu, (void)data;
    if (depth < DEEPEST)
        began[depth] = total;
    depth++;
}

static void region_stops(unsigned cpu, void *data)
{
    (void)cpu, (void)data;
    if (depth == 0 || --depth >= DEEPEST) {
        fprintf(out, "unbalanced markers\n");
    } else {
        const struct counts *from = &began[depth];
        fprintf(out, "insns=%" PRIu64 " loads=%" PRIu64 " stores=%" PRIu64 "\n", total.insns - from->insns,
                total.loads - from->loads, total.stores - from->stores);
    }
    fflush(out);
}

static void access_happens(unsigned cpu, uint32_t access, uint64_t address, void *data)
{
    (void)cpu, (void)data;
    if (!qemu_plugin_mem_is_store(access)) {
        total.loads++;
        return;
    }
    total.stores++;
    if (address >= floor_address && address < lowest)
        lowest = address;
}

static void program_ends(plugin_id id, void *data)
{
    (void)id, (void)data;
    fprintf(out, "total=%" PRIu64 "\n", total.insns);
    if (floor_address != 0)
        fprintf(out, "lowest=%" PRIu64 "\n", lowest);
    fflush(out);
}

static void stop(const char *reason)
{
    fprintf(out, "stopped=%s\n", reason);
    fflush(out);
    _exit(3);
}

/* Stops a program that does not come to its end. */
static void *watch(void *data)
{
    const struct timespec nap = {0, 100000000};
    uint64_t before = 0, still = 0;
    (void)data;
    for (;;) {
        nanosleep(&nap, NULL);
        uint64_t now = __atomic_load_n(&total.insns, __ATOMIC_RELAXED);
        still = now == before ? still + 1 : 0;
        before = now;
        if (now > most)
            stop("it ran more instructions than it may");
        if (still >= naps)
            stop("it waits for what never comes");
    }
    return NULL;
}

/* QEMU 7.2 takes the halfword behind the last but one of a page, which it peeks at, for a part of the instruction before
 * it. No longer instruction begins as a marker does, so the first bytes tell. */
static bool is_marker(const struct qemu_plugin_insn *insn, const struct marker *marker)
{
    return qemu_plugin_insn_size(insn) >= marker->size &&
           memcmp(qemu_plugin_insn_data(insn), marker->code, marker->size) == 0;
}

static void instrument(struct qemu_plugin_insn *insn)
{
    if (is_marker(insn, &markers->start)) {
        qemu_plugin_register_vcpu_insn_exec_cb(insn, region_starts, NO_REGISTERS, NULL);
    } else if (is_marker(insn, &markers->stop)) {
        qemu_plugin_register_vcpu_insn_exec_cb(insn, region_stops, NO_REGISTERS, NULL);
    } else {
        qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &total.insns, 1);
        qemu_plugin_register_vcpu_mem_cb(insn, access_happens, NO_REGISTERS, READS_AND_WRITES, NULL);
    }
}

static void block_translated(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < count; i++)
        instrument(qemu_plugin_tb_get_insn(block, i));
}

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const struct guest_info *guest, int argc,
                                                                char **argv)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(guest->target_name, known[i].guest) == 0)
            markers = &known[i];
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0)
            out = fopen(argv[i] + 4, "w");
        if (strncmp(argv[i], "floor=", 6) == 0)
            floor_address = strtoull(argv[i] + 6, NULL, 0);
        if (strncmp(argv[i], "most=", 5) == 0)
            most = strtoull(argv[i] + 5, NULL, 0);
        if (strncmp(argv[i], "naps=", 5) == 0)
            naps = strtoull(argv[i] + 5, NULL, 0);
    }
    if (markers == NULL || out == NULL) {
        fprintf(stderr, "insncount: needs an arm or riscv32 guest and out=FILE\n");
        return -1;
    }
    pthread_t watcher;
    if (most != 0 && pthread_create(&watcher, NULL, watch, NULL) != 0)
        return -1;
    qemu_plugin_register_atexit_cb(id, program_ends, NULL);
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    return 0;
}
