/* The yardstick for `floor`: the same container, made by the same system calls in the same order, in plain C. The extra time of
 * dunnage's own floor is dunnage's overhead.
 *
 *     floor ROOTFS SCRATCH FILTER PROGRAM [ARGUMENT...]
 *
 * ROOTFS is the unpacked image, with or without proc, dev and sys; SCRATCH an empty directory for the
 * overlay; FILTER a file of raw `struct sock_filter`, or `-` for none; PROGRAM the path inside. For every
 * line on standard input, one container is launched, waited for and removed, and one line is written with
 * the nanoseconds from before the first step to after the last. The container's output goes to a pipe that
 * is read after the second stamp. Needs root and Linux 5.9; any failed step ends it.
 *
 * It is one long file, so that it can be read from top to bottom next to `src/sys/container`.
 *
 * Build: cc -std=c11 -O2 -static -o floor floor.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATH 512
#define HIERARCHIES 32
#define DOCKER_CAPABILITIES 0xa80425fbULL

/* A mounted cgroup hierarchy, and the container's paths in it. */
struct hierarchy {
    char mount[PATH], name[PATH], options[PATH]; /* options are empty for version 2 */
    char parent[PATH], own[PATH], tasks[PATH], view[PATH];
};

static struct hierarchy hierarchies[HIERARCHIES];
static int hierarchy_count, version_1_count, version_2 = -1;
static char own[PATH], upper[PATH], work[PATH], work_work[PATH], overlay[4 * PATH];
static const char *rootfs, *program, *name = "c-floor";
static char **arguments;
static char *environment[] = {"PATH=/bin", NULL};
static struct sock_fprog filter;
static int last_capability, null_fd, output[2];
static char *stack;

static const char *const masked_paths[] = {
    "proc/asound", "proc/acpi", "proc/kcore", "proc/keys", "proc/latency_stats",
    "proc/timer_list", "proc/timer_stats", "proc/sched_debug", "proc/scsi", "sys/firmware",
};
static const char *const read_only_paths[] = {
    "proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger",
};
static const char *masks[10], *read_only[5];
static int mask_is_directory[10], mask_count, read_only_count;

/* Ends the whole yardstick, or the child, because a yardstick without a step would measure something else. */
#define MUST(call) do { if ((call) < 0) refused(#call); } while (0)
static void refused(const char *call) {
    dprintf(2, "floor.c: %s: %s\n", call, strerror(errno));
    _exit(1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* ---- Before any interval: everything that is known in advance. ---- */

static void copy_file(const char *from_directory, const char *to_directory, const char *file) {
    char path[2 * PATH], content[4096];
    snprintf(path, sizeof path, "%s/%s", from_directory, file);
    int fd = open(path, O_RDONLY);
    ssize_t length = read(fd, content, sizeof content);
    close(fd);
    snprintf(path, sizeof path, "%s/%s", to_directory, file);
    MUST(fd = open(path, O_WRONLY));
    MUST(write(fd, content, length));
    close(fd);
}

static void write_file(const char *path, const char *content) {
    int fd = open(path, O_WRONLY);
    if (fd >= 0 && write(fd, content, strlen(content)) < 0) { /* a controller may refuse */ }
    close(fd);
}

/* Whether each word of a comma-separated list is in another list. */
static int has_all(const char *list, const char *words) {
    char copy[PATH];
    snprintf(copy, sizeof copy, "%.500s", words);
    for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        size_t length = strlen(word);
        const char *at = list;
        while (at && (strncmp(at, word, length) || (at[length] && at[length] != ','))) {
            at = strchr(at, ',');
            at = at ? at + 1 : NULL;
        }
        if (!at) return 0;
    }
    return 1;
}

/* The hierarchies in the order of /proc/self/cgroup, as in dunnage. */
static void find_hierarchies(void) {
    char line[4096], mounts[1 << 16];
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (fgets(line, sizeof line, file) && hierarchy_count < HIERARCHIES) {
        char *controllers = strchr(line, ':') + 1;
        *strchr(controllers, ':') = 0;
        FILE *mountinfo = fopen("/proc/self/mountinfo", "r");
        while (fgets(mounts, sizeof mounts, mountinfo)) {
            struct hierarchy *one = &hierarchies[hierarchy_count];
            char kind[64], super[PATH], point[PATH];
            char *dash = strstr(mounts, " - ");
            if (!dash || sscanf(dash, " - %63s %*s %511s", kind, super) != 2) continue;
            if (sscanf(mounts, "%*s %*s %*s %*s %511s", point) != 1) continue;
            int second = !*controllers;
            if (strcmp(kind, second ? "cgroup2" : "cgroup")) continue;
            if (!second && !has_all(super, controllers)) continue;
            strcpy(one->options, controllers);
            strcpy(one->mount, point);
            strcpy(one->name, strrchr(point, '/') + 1);
            snprintf(one->parent, PATH, "%.400s/dunnage", point);
            snprintf(one->own, PATH, "%.400s/dunnage/%s", point, name);
            snprintf(one->tasks, PATH, "%.400s/dunnage/%s/tasks", point, name);
            snprintf(one->view, PATH, "sys/fs/cgroup/%.400s", strrchr(point, '/') + 1);
            if (second) version_2 = hierarchy_count; else version_1_count++;
            hierarchy_count++;
            break;
        }
        fclose(mountinfo);
    }
    fclose(file);
}

static void establish_hierarchies(void) {
    char path[2 * PATH];
    for (int i = 0; i < hierarchy_count; i++) {
        struct hierarchy *one = &hierarchies[i];
        if (mkdir(one->parent, 0755) < 0 && errno != EEXIST) refused(one->parent);
        if (strstr(one->options, "cpuset")) {
            copy_file(one->mount, one->parent, "cpuset.cpus");
            copy_file(one->mount, one->parent, "cpuset.mems");
            snprintf(path, sizeof path, "%s/cgroup.clone_children", one->parent);
            write_file(path, "1");
        }
        if (i == version_2) {
            char list[1024] = "", all[2048] = "";
            snprintf(path, sizeof path, "%s/cgroup.controllers", one->parent);
            int fd = open(path, O_RDONLY);
            if (read(fd, list, sizeof list - 1) < 0) refused(path);
            close(fd);
            for (char *word = strtok(list, " \n"); word; word = strtok(NULL, " \n")) {
                strcat(strcat(strcat(all, "+"), word), " ");
            }
            snprintf(path, sizeof path, "%s/cgroup.subtree_control", one->parent);
            if (*all) write_file(path, all);
        }
    }
}

static void read_filter(const char *path) {
    struct stat status;
    int fd;
    MUST(fd = open(path, O_RDONLY));
    MUST(fstat(fd, &status));
    filter.filter = malloc(status.st_size);
    if (read(fd, filter.filter, status.st_size) != status.st_size) refused(path);
    filter.len = status.st_size / sizeof(struct sock_filter);
    close(fd);
}

/* Mount points that the image lacks come from a separate layer. */
static void prepare_overlay(const char *scratch) {
    static const char *const points[] = {"proc", "dev", "sys"};
    char path[2 * PATH], layer[PATH];
    int lacks = 0;
    struct stat status;
    snprintf(layer, sizeof layer, "%.400s/.mount-points", scratch);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", rootfs, points[i]);
        if (stat(path, &status) == 0) continue;
        lacks = 1;
        mkdir(layer, 0755);
        snprintf(path, sizeof path, "%s/%s", layer, points[i]);
        mkdir(path, 0755);
    }
    snprintf(own, PATH, "%.400s/%s", scratch, name);
    snprintf(upper, PATH, "%.400s/%s/upper", scratch, name);
    snprintf(work, PATH, "%.400s/%s/work", scratch, name);
    snprintf(work_work, PATH, "%.400s/%s/work/work", scratch, name);
    snprintf(overlay, sizeof overlay, "lowerdir=%s%s%s,upperdir=%s,workdir=%s,index=off", lacks ? layer : "",
             lacks ? ":" : "", rootfs, upper, work);
}

static void find_paths(void) {
    char path[PATH];
    struct stat status;
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "/%s", masked_paths[i]);
        if (lstat(path, &status) < 0) continue;
        mask_is_directory[mask_count] = S_ISDIR(status.st_mode);
        masks[mask_count++] = masked_paths[i];
    }
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "/%s", read_only_paths[i]);
        if (lstat(path, &status) == 0) read_only[read_only_count++] = read_only_paths[i];
    }
}

/* ---- The child: everything between the clone and the program. ---- */

static const unsigned long no_devices = MS_NOSUID | MS_NODEV | MS_NOEXEC;

static void read_only_remount(const char *path) {
    MUST(mount("", path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | no_devices, NULL));
}

static void enter_cgroups(void) {
    for (int i = 0; i < hierarchy_count; i++) {
        if (i == version_2) continue;
        int fd;
        MUST(fd = open(hierarchies[i].tasks, O_WRONLY | O_CLOEXEC));
        MUST(write(fd, "0", 1));
        MUST(close(fd));
    }
}

static void loopback_up(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd;
    MUST(fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    MUST(ioctl(fd, SIOCSIFFLAGS, &request));
    MUST(close(fd));
}

static void mount_cgroups(void) {
    if (version_1_count == 0) {
        if (version_2 >= 0) MUST(mount("cgroup", "sys/fs/cgroup", "cgroup2", no_devices | MS_RDONLY, NULL));
        return;
    }
    MUST(mount("cgroup", "sys/fs/cgroup", "tmpfs", no_devices, "mode=755,size=1024k"));
    for (int i = 0; i < hierarchy_count; i++) {
        if (i == version_2) continue;
        struct hierarchy *one = &hierarchies[i];
        MUST(mkdir(one->view, 0755));
        MUST(mount("cgroup", one->view, "cgroup", no_devices | MS_RDONLY, one->options));
        if (!strchr(one->options, ',')) continue;
        char options[PATH], link[PATH];
        strcpy(options, one->options);
        for (char *word = strtok(options, ","); word; word = strtok(NULL, ",")) {
            if (strcmp(word, one->name) == 0) continue;
            snprintf(link, sizeof link, "sys/fs/cgroup/%.400s", word);
            if (symlink(one->name, link) < 0 && errno != EEXIST) refused(link);
        }
    }
    read_only_remount("sys/fs/cgroup");
}

static void make_devices(void) {
    MUST(mknod("dev/null", S_IFCHR | 0666, makedev(1, 3)));
    MUST(mknod("dev/zero", S_IFCHR | 0666, makedev(1, 5)));
    MUST(mknod("dev/full", S_IFCHR | 0666, makedev(1, 7)));
    MUST(mknod("dev/tty", S_IFCHR | 0666, makedev(5, 0)));
    MUST(mknod("dev/random", S_IFCHR | 0666, makedev(1, 8)));
    MUST(mknod("dev/urandom", S_IFCHR | 0666, makedev(1, 9)));
    MUST(symlink("/proc/self/fd", "dev/fd"));
    MUST(symlink("/proc/self/fd/0", "dev/stdin"));
    MUST(symlink("/proc/self/fd/1", "dev/stdout"));
    MUST(symlink("/proc/self/fd/2", "dev/stderr"));
    MUST(symlink("/proc/kcore", "dev/core"));
    MUST(symlink("pts/ptmx", "dev/ptmx"));
}

static void mount_filesystems(void) {
    MUST(mount("proc", "proc", "proc", no_devices, NULL));
    MUST(mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k"));
    MUST(mkdir("dev/pts", 0755));
    MUST(mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
               "newinstance,ptmxmode=0666,mode=0620,gid=5"));
    MUST(mount("sysfs", "sys", "sysfs", no_devices | MS_RDONLY, NULL));
    mount_cgroups();
    MUST(mkdir("dev/mqueue", 0755));
    MUST(mount("mqueue", "dev/mqueue", "mqueue", no_devices, NULL));
    MUST(mkdir("dev/shm", 0755));
    MUST(mount("shm", "dev/shm", "tmpfs", no_devices, "mode=1777,size=67108864"));
    make_devices();
    for (int i = 0; i < mask_count; i++) {
        if (mask_is_directory[i]) MUST(mount("tmpfs", masks[i], "tmpfs", MS_RDONLY, NULL));
        else MUST(mount("dev/null", masks[i], NULL, MS_BIND, NULL));
    }
    for (int i = 0; i < read_only_count; i++) {
        MUST(mount(read_only[i], read_only[i], NULL, MS_BIND | MS_REC, NULL));
        read_only_remount(read_only[i]);
    }
}

static void give_up_privileges(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const uint32_t low = (uint32_t)DOCKER_CAPABILITIES, high = DOCKER_CAPABILITIES >> 32;
    struct __user_cap_data_struct data[2] = {{low, low, 0}, {high, high, 0}};
    const gid_t groups[] = {0};
    for (int i = 0; i <= last_capability; i++) {
        if (!(DOCKER_CAPABILITIES >> i & 1)) MUST(prctl(PR_CAPBSET_DROP, i, 0, 0, 0));
    }
    /* Raw calls: libc's wrappers would notify the threads of the parent, whose memory this is. */
    MUST(syscall(SYS_setgroups, 1, groups));
    MUST(syscall(SYS_setresgid, 0, 0, 0));
    MUST(syscall(SYS_setresuid, 0, 0, 0));
    MUST(syscall(SYS_capset, &header, data));
    MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (filter.len) {
        MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter));
    }
}

static int become_container(void *unused) {
    (void)unused;
    /* The kernel's own structure: a handler of four words, a mask of one. */
    const uint64_t default_action[4] = {0}, no_signals = 0;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
    MUST(setsid());
    umask(0);
    enter_cgroups();
    loopback_up();
    MUST(unshare(CLONE_NEWCGROUP));
    MUST(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    MUST(mount("overlay", own, "overlay", 0, overlay));
    MUST(chdir(own));
    mount_filesystems();
    MUST(syscall(SYS_pivot_root, ".", "."));
    MUST(umount2(".", MNT_DETACH));
    MUST(chdir("/"));
    MUST(sethostname(name, strlen(name)));
    MUST(dup2(null_fd, 0));
    MUST(dup2(output[1], 1));
    MUST(dup2(output[1], 2));
    MUST(syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */));
    umask(022);
    give_up_privileges();
    MUST(syscall(SYS_rt_sigaction, SIGPIPE, default_action, NULL, 8));
    MUST(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, 8));
    MUST(execve(program, arguments, environment));
    return 1;
}

/* ---- One launch. ---- */

/* clone3 with a separate stack for the child, which libc does not offer. */
static pid_t clone_into(int cgroup_fd) {
    struct clone_args call = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID |
                 CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .stack = (uintptr_t)stack,
        .stack_size = 65536,
        .cgroup = cgroup_fd,
    };
    long result = SYS_clone3;
    register int (*child)(void *) __asm__("r13") = become_container;
    __asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\txor %%edi, %%edi\n\t"
                     "call *%%r13\n\tud2\n1:"
                     : "+a"(result)
                     : "D"(&call), "S"(sizeof call), "r"(child)
                     : "rcx", "r11", "memory");
    if (result < 0) errno = -result;
    return result;
}

static void launch(void) {
    int directory = -1, status;
    pid_t pid;
    uint64_t all = ~0ULL, before;
    for (int i = 0; i < hierarchy_count; i++) MUST(mkdir(hierarchies[i].own, 0755));
    MUST(mkdir(own, 0755));
    MUST(mkdir(upper, 0755));
    MUST(mkdir(work, 0755));
    if (version_2 >= 0) MUST(directory = open(hierarchies[version_2].own, O_PATH | O_DIRECTORY | O_CLOEXEC));
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    if (version_2 >= 0) {
        MUST(pid = clone_into(directory));
    } else {
        const int flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID;
        MUST(pid = clone(become_container, stack + 65536, CLONE_VM | CLONE_VFORK | flags | SIGCHLD, NULL));
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
    if (version_2 >= 0) close(directory);
    MUST(waitpid(pid, &status, 0));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        errno = ECHILD;
        refused("the container's program");
    }
    for (int i = 0; i < hierarchy_count; i++) MUST(rmdir(hierarchies[i].own));
    MUST(rmdir(work_work));
    MUST(rmdir(work));
    MUST(rmdir(upper));
    MUST(rmdir(own));
}

int main(int count, char **values) {
    char line[64], sink[65536];
    if (count < 5) {
        dprintf(2, "usage: floor ROOTFS SCRATCH FILTER PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    rootfs = values[1];
    program = values[4];
    arguments = values + 4;
    if (strcmp(values[3], "-")) read_filter(values[3]);
    find_hierarchies();
    establish_hierarchies();
    prepare_overlay(values[2]);
    find_paths();
    FILE *file = fopen("/proc/sys/kernel/cap_last_cap", "r");
    if (!file || fscanf(file, "%d", &last_capability) != 1) refused("cap_last_cap");
    fclose(file);
    MUST(null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC));
    MUST(pipe2(output, O_CLOEXEC));
    MUST(fcntl(output[0], F_SETFL, O_NONBLOCK));
    stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_POPULATE, -1, 0);
    if (stack == MAP_FAILED) refused("mmap");
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        int64_t start = now();
        launch();
        int64_t end = now();
        while (read(output[0], sink, sizeof sink) > 0) { }
        printf("%lld\n", (long long)(end - start));
    }
    for (int i = 0; i < hierarchy_count; i++) rmdir(hierarchies[i].parent);
    return 0;
}
