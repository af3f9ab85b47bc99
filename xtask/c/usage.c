/* The resources of one run of a program: wall time, CPU time and peak memory.
 *
 *     usage PROGRAM [ARGUMENT...]
 *
 * Runs the program once with standard output to /dev/null and writes one line: nanoseconds of wall time from
 * before posix_spawn to after wait4, nanoseconds of user and of system CPU time, and the largest resident set
 * in bytes, from the kernel's rusage.
 *
 * Build: cc -std=c11 -O2 -static -o usage usage.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int64_t nanoseconds(struct timeval time) {
    return time.tv_sec * 1000000000LL + time.tv_usec * 1000LL;
}

int main(int count, char **values) {
    if (count < 2) {
        dprintf(2, "usage: usage PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int status;
    struct rusage usage;
    const int64_t start = now();
    const int error = posix_spawn(&pid, values[1], &actions, NULL, values + 1, environ);
    if (error) {
        dprintf(2, "usage.c: %s: %s\n", values[1], strerror(error));
        return 1;
    }
    if (wait4(pid, &status, 0, &usage) < 0) {
        dprintf(2, "usage.c: wait4: %s\n", strerror(errno));
        return 1;
    }
    const int64_t wall = now() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        dprintf(2, "usage.c: %s ended with status %x\n", values[1], status);
        return 1;
    }
    printf("%lld %lld %lld %lld\n", (long long)wall, (long long)nanoseconds(usage.ru_utime),
           (long long)nanoseconds(usage.ru_stime), usage.ru_maxrss * 1024LL);
    return 0;
}
