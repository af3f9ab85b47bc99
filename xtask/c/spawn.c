/* The yardstick for `bare`: a loop of posix_spawn and waitpid.
 *
 *     spawn [--entry] PROGRAM [ARGUMENT...]
 *
 * For every line on standard input, the program is started once and waited for, and one line is written with
 * the nanoseconds from before posix_spawn to after waitpid. The program's output goes to /dev/null. With
 * --entry it goes to a pipe that is read afterwards, and a second number follows: the nanoseconds from
 * before posix_spawn to the stamp that the program took at its entry, from a line `entry NANOSECONDS` of its
 * output.
 *
 * Build: cc -std=c11 -O2 -static -o spawn spawn.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void refused(const char *what, int error) {
    dprintf(2, "spawn.c: %s: %s\n", what, strerror(error));
    _exit(1);
}

int main(int count, char **values) {
    const int with_entry = count > 1 && strcmp(values[1], "--entry") == 0;
    char **arguments = values + 1 + with_entry;
    if (count < 2 + with_entry) {
        dprintf(2, "usage: spawn [--entry] PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), output[2] = {-1, null};
    if (null < 0) refused("/dev/null", errno);
    if (with_entry && pipe2(output, O_CLOEXEC) < 0) refused("pipe2", errno);
    if (with_entry) fcntl(output[0], F_SETFL, O_NONBLOCK);

    /* As dunnage starts its children: with streams, their own session, and clean signals. */
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, null, 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    posix_spawn_file_actions_adddup2(&actions, null, 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, broken_pipe;
    sigemptyset(&none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &broken_pipe);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);

    char line[64], text[65536];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        pid_t pid;
        int status;
        const int64_t start = now();
        const int error = posix_spawn(&pid, arguments[0], &actions, &attributes, arguments, environ);
        if (error) refused(arguments[0], error);
        if (waitpid(pid, &status, 0) < 0) refused("waitpid", errno);
        const int64_t end = now();
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) refused("the program", ECHILD);
        if (!with_entry) {
            printf("%lld\n", (long long)(end - start));
            continue;
        }
        size_t length = 0;
        for (ssize_t got; length < sizeof text - 1; length += got) {
            got = read(output[0], text + length, sizeof text - 1 - length);
            if (got <= 0) break;
        }
        text[length] = 0;
        const char *entry = strstr(text, "entry ");
        if (!entry) refused("no `entry` in the program's output", EPROTO);
        printf("%lld %lld\n", (long long)(end - start), atoll(entry + 6) - (long long)start);
    }
    return 0;
}
