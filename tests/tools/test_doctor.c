/* What `redoubt doctor` reads of the kernel, from folders that stand for /proc and /sys. */
#include "tools/doctor/doctor.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct host {
    char folder[64], proc[80], sys[80];
    struct doctor doctor;
};

static void put(const struct host *host, const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", host->folder, name);
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A server that is process 77, 100 seconds old, on a host with 1 GiB. */
static void begin(struct host *host, const char *uptime)
{
    char text[400];
    *host = (struct host){0};
    snprintf(host->folder, sizeof host->folder, "/tmp/redoubt-doctor-XXXXXX");
    cr_assert(mkdtemp(host->folder) != NULL);
    snprintf(host->proc, sizeof host->proc, "%s/proc", host->folder);
    snprintf(host->sys, sizeof host->sys, "%s/sys", host->folder);
    host->doctor = (struct doctor){.proc = host->proc, .sys = host->sys};
    snprintf(text, sizeof text,
             "77 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %ld 20 21\n",
             900 * sysconf(_SC_CLK_TCK));
    put(host, "proc/uptime", "1000.50 2000.00\n");
    put(host, "proc/77/stat", text);
    put(host, "proc/77/status", "Name:\tx\nVmRSS:\t  1000 kB\nVmSwap:\t  0 kB\nTHP_enabled:\t1\n");
    put(host, "proc/77/cgroup", "0::/system.slice/redis.service\n");
    put(host, "proc/meminfo", "MemTotal:  1048576 kB\n");
    put(host, "proc/sys/vm/overcommit_memory", "1\n");
    put(host, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    snprintf(text, sizeof text,
             "process_id:77\r\nuptime_in_seconds:%s\r\nused_memory:100000000\r\n"
             "total_system_memory:2147483648\r\n",
             uptime);
    cr_assert(rd_buf_add(&host->doctor.info, text, strlen(text)));
}

static void end(struct host *host)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", host->folder);
    cr_assert(system(command) == 0);
    doctor_done(&host->doctor);
}

typedef void judge(const struct doctor *d, struct doctor_verdict *v);

static void expect(const struct host *host, judge *ask, enum doctor_state state, const char *figure)
{
    struct doctor_verdict v = {.severity = DOCTOR_WARNING};
    ask(&host->doctor, &v);
    cr_expect(v.state == state, "%s is %d", figure, (int)v.state);
    cr_expect_str_eq(v.figure, figure);
}

Test(doctor, the_process_is_found_by_its_age)
{
    static const struct {
        const char *uptime;
        bool near, here;
    } cases[] = {{"100", true, true}, {"97", true, true}, {"5000", true, false},
                 {"3", true, false},  {"x", true, false}, {"100", false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct host host;
        begin(&host, cases[i].uptime);
        doctor_find_process(&host.doctor, cases[i].near);
        cr_expect(host.doctor.host.here == cases[i].here, "case %zu", i);
        cr_expect(host.doctor.host.here == (host.doctor.host.why[0] == '\0'));
        expect(&host, doctor_judge_overcommit, cases[i].here ? DOCTOR_PASSED : DOCTOR_UNKNOWN,
               cases[i].here ? "vm.overcommit_memory = 1" : host.doctor.host.why);
        end(&host);
    }
}

Test(doctor, settings_of_the_kernel)
{
    struct host host;
    begin(&host, "100");
    doctor_find_process(&host.doctor, true);
    expect(&host, doctor_judge_huge_pages, DOCTOR_PASSED, "always [madvise] never");
    expect(&host, doctor_judge_swapped, DOCTOR_PASSED, "0 bytes swapped out");
    put(&host, "proc/sys/vm/overcommit_memory", "2\n");
    put(&host, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    expect(&host, doctor_judge_overcommit, DOCTOR_FOUND, "vm.overcommit_memory = 2");
    expect(&host, doctor_judge_huge_pages, DOCTOR_FOUND,
           "transparent_hugepage/enabled is [always] madvise never");
    put(&host, "proc/77/status", "VmRSS:\t 3072 kB\nVmSwap:\t 1024 kB\nTHP_enabled:\t0\n");
    expect(&host, doctor_judge_huge_pages, DOCTOR_PASSED,
           "[always] madvise never, but not for this process");
    expect(&host, doctor_judge_swapped, DOCTOR_FOUND, "1.0 MiB of 4.0 MiB swapped out");
    put(&host, "proc/77/status", "VmRSS:\t 3072 kB\n");
    char path[200];
    snprintf(path, sizeof path, "%s/77/status cannot be read", host.proc);
    expect(&host, doctor_judge_swapped, DOCTOR_UNKNOWN, path);
    end(&host);
}

Test(doctor, the_memory_is_that_of_the_host_or_of_its_control_group)
{
    struct host host;
    begin(&host, "100");
    expect(&host, doctor_judge_fork_headroom, DOCTOR_PASSED, "the server uses 4 % of 2.0 GiB");
    doctor_find_process(&host.doctor, true);
    expect(&host, doctor_judge_fork_headroom, DOCTOR_PASSED, "the server uses 9 % of 1.0 GiB");
    put(&host, "sys/fs/cgroup/system.slice/redis.service/memory.max", "134217728\n");
    doctor_find_process(&host.doctor, true);
    expect(&host, doctor_judge_fork_headroom, DOCTOR_FOUND,
           "the server uses 95.4 MiB, 74 % of 128 MiB");
    put(&host, "sys/fs/cgroup/system.slice/redis.service/memory.max", "max\n");
    doctor_find_process(&host.doctor, true);
    expect(&host, doctor_judge_fork_headroom, DOCTOR_PASSED, "the server uses 9 % of 1.0 GiB");
    end(&host);
}

Test(doctor, save_points_are_counted)
{
    static const struct {
        const char *text;
        size_t n;
        uint64_t seconds;
    } cases[] = {{"", 0, 0},           {"3600 1 300 100 60 10000", 3, 3600},
                 {"60 1 30 1", 2, 30}, {"60 100", 1, 0},
                 {"60", 0, 0},         {"x 1", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t seconds;
        cr_expect(doctor_save_points(rd_slice_str(cases[i].text), &seconds) == cases[i].n);
        cr_expect(seconds == cases[i].seconds, "case %zu", i);
    }
}
