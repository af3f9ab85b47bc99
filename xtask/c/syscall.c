/* Measures a getppid call by the `syscall` instruction, and through libc.
 *
 *     syscall WINDOW
 *
 * Makes calls for WINDOW nanoseconds in each way, in batches of at least 50 microseconds, on the last CPU that
 * it may use. Writes one line: picoseconds per call by the instruction, and through libc. Each is that of the
 * batch at the 2nd percentile, minus the time of the two clock readings around it. libc adds its function: a
 * call and a return, but no check, because getppid cannot fail.
 *
 * Build: cc -std=c11 -O2 -static -o syscall syscall.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LEAST = 50000, MOST = 100000, FIFTIETH = 50, EMPTY = 255 };

static int64_t durations[MOST];

static int64_t now(void) {
    struct timespec time;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void by_instruction(long times) {
    while (times-- > 0) {
        long result = SYS_getppid;
        __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    }
}

static void by_libc(long times) {
    while (times-- > 0) {
        getppid();
    }
}

static int64_t batch(void (*make)(long), long size) {
    const int64_t begin = now();
    make(size);
    return now() - begin;
}

static int by_length(const void *one, const void *other) {
    const int64_t first = *(const int64_t *)one, second = *(const int64_t *)other;
    return (first > second) - (first < second);
}

static int64_t low(int count) {
    qsort(durations, (size_t)count, sizeof *durations, by_length);
    const int rank = count / FIFTIETH;
    return durations[rank > 0 ? rank - 1 : 0];
}

static long long picoseconds(void (*make)(long), int64_t window) {
    long size = 1;
    while (batch(make, size) < LEAST || batch(make, size) < LEAST) {
        size *= 2;
    }
    for (int index = 0; index < EMPTY; index++) {
        durations[index] = batch(make, 0);
    }
    const int64_t clock = low(EMPTY);
    const int64_t begin = now();
    int count = 0;
    while (count < MOST && (count == 0 || now() - begin < window)) {
        durations[count++] = batch(make, size);
    }
    return (low(count) - clock) * 1000 / size;
}

int main(int count, char **values) {
    const int64_t window = count == 2 ? atoll(values[1]) : 0;
    if (window <= 0) {
        dprintf(2, "usage: syscall WINDOW\n");
        return 2;
    }
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        dprintf(2, "syscall.c: sched_getaffinity: %s\n", strerror(errno));
        return 1;
    }
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &allowed)) {
        last--;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    if (sched_setaffinity(0, sizeof one, &one)) {
        dprintf(2, "syscall.c: sched_setaffinity: %s\n", strerror(errno));
        return 1;
    }
    const long long instruction = picoseconds(by_instruction, window);
    printf("%lld %lld\n", instruction, picoseconds(by_libc, window));
    return 0;
}
