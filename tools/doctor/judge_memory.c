/* judge_memory.c - whether there is memory for a child process and its copies, and what the kernel
 * does with it. */
#include "tools/doctor/doctor.h"

#include <stdio.h>

enum {
    HEADROOM_WARNING = 65, /* percent of the memory */
    HEADROOM_ERROR = 90,
    FULL = 95, /* percent of maxmemory */
    SLOW_FORK_US = 500000,
    SWAP_PERCENT = 1
};

static uint64_t percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((double)part * 100 / (double)whole);
}

/* The memory of the host, or of the container if that is known to be less. */
static bool memory_of(const struct doctor *d, struct doctor_verdict *v, uint64_t *ret)
{
    uint64_t total = doctor_info_or_0(d, "total_system_memory");
    if (d->host.here && d->host.memory > 0 && (total == 0 || d->host.memory < total))
        total = d->host.memory;
    if (total == 0)
        doctor_unknown(v, "INFO of this server has no field total_system_memory");
    *ret = total;
    return total > 0;
}

void doctor_judge_fork_headroom(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t used, total, limit = 0;
    struct doctor_verdict ignored;
    if (!doctor_info_u64(d, v, "used_memory", &used) || !memory_of(d, v, &total))
        return;
    if (doctor_info_or_0(d, "used_memory_rss") > used)
        used = doctor_info_or_0(d, "used_memory_rss");
    if (!doctor_config_u64(d, &ignored, "maxmemory", &limit))
        limit = doctor_info_or_0(d, "maxmemory");
    bool by_limit = limit > used;
    uint64_t share = percent(by_limit ? limit : used, total);
    if (share <= HEADROOM_WARNING) {
        doctor_passed(v, "%s %llu %% of %s", by_limit ? "maxmemory is" : "the server uses",
                      (unsigned long long)share, rd_show_bytes(total).s);
        return;
    }
    if (share > HEADROOM_ERROR && !by_limit)
        v->severity = DOCTOR_ERROR;
    doctor_found(v, "%s %s, %llu %% of %s", by_limit ? "maxmemory is" : "the server uses",
                 rd_show_bytes(by_limit ? limit : used).s, (unsigned long long)share,
                 rd_show_bytes(total).s);
    doctor_fix(v, "CONFIG SET maxmemory %llumb, or more memory",
               (unsigned long long)(total / 100 * HEADROOM_WARNING >> 20));
}

void doctor_judge_maxmemory(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t limit, total;
    struct doctor_verdict ignored;
    if (!doctor_config_u64(d, v, "maxmemory", &limit))
        return;
    if (limit > 0) {
        doctor_passed(v, "maxmemory %s", rd_show_bytes(limit).s);
        return;
    }
    doctor_found(v, "maxmemory 0");
    if (memory_of(d, &ignored, &total))
        doctor_fix(v, "CONFIG SET maxmemory %llumb",
                   (unsigned long long)(total / 100 * HEADROOM_WARNING >> 20));
}

void doctor_judge_memory_full(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t limit, used;
    struct rd_slice policy;
    if (!doctor_config_u64(d, v, "maxmemory", &limit) ||
        !doctor_config(d, v, "maxmemory-policy", &policy) ||
        !doctor_info_u64(d, v, "used_memory", &used))
        return;
    uint64_t apart = doctor_info_or_0(d, "mem_not_counted_for_evict");
    used = used > apart ? used - apart : 0;
    if (limit == 0)
        doctor_none(v, "maxmemory 0");
    else if (!rd_slice_is(policy, "noeviction"))
        doctor_none(v, "maxmemory-policy %s", rd_show_plain(policy).s);
    else if (percent(used, limit) < FULL)
        doctor_passed(v, "the server uses %llu %% of maxmemory",
                      (unsigned long long)percent(used, limit));
    else
        doctor_found(v, "the server uses %s, %llu %% of maxmemory, maxmemory-policy noeviction",
                     rd_show_bytes(used).s, (unsigned long long)percent(used, limit));
}

void doctor_judge_evicted(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t evicted, seconds;
    struct rd_slice save, policy;
    if (!doctor_info_u64(d, v, "evicted_keys", &evicted))
        return;
    if (evicted == 0) {
        doctor_passed(v, "evicted_keys:0");
        return;
    }
    if (!doctor_config(d, v, "save", &save) || !doctor_config(d, v, "maxmemory-policy", &policy))
        return;
    if (doctor_save_points(save, &seconds) == 0 && !doctor_config_is(d, "appendonly", "yes"))
        doctor_none(v, "a cache without persistence");
    else
        doctor_found(v, "evicted_keys:%s, maxmemory-policy %s", rd_show_count(evicted).s,
                     rd_show_plain(policy).s);
}

void doctor_judge_slow_fork(const struct doctor *d, struct doctor_verdict *v)
{
    uint64_t us, used = doctor_info_or_0(d, "used_memory");
    if (!doctor_info_u64(d, v, "latest_fork_usec", &us))
        return;
    if (us > SLOW_FORK_US)
        doctor_found(v, "the last fork took %s with %s in use", rd_show_duration(us / 1000).s,
                     rd_show_bytes(used).s);
    else
        doctor_passed(v, "latest_fork_usec:%s", rd_show_count(us).s);
}

/* ---- the kernel ---- */

/* The first line of a small file. */
static bool read_line(char *dst, size_t size, const char *folder, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool ok = fgets(dst, (int)size, file) != NULL;
    fclose(file);
    dst[ok ? strcspn(dst, "\n") : 0] = '\0';
    return ok;
}

static bool is_here(const struct doctor *d, struct doctor_verdict *v)
{
    if (!d->host.here)
        doctor_unknown(v, "%s", d->host.why);
    return d->host.here;
}

void doctor_judge_overcommit(const struct doctor *d, struct doctor_verdict *v)
{
    char line[100];
    if (!is_here(d, v))
        return;
    if (!read_line(line, sizeof line, d->proc, "sys/vm/overcommit_memory"))
        doctor_unknown(v, "%s/sys/vm/overcommit_memory cannot be read", d->proc);
    else if (strcmp(line, "1") == 0)
        doctor_passed(v, "vm.overcommit_memory = 1");
    else
        doctor_found(v, "vm.overcommit_memory = %s", rd_show_plain(rd_slice_str(line)).s);
}

void doctor_judge_huge_pages(const struct doctor *d, struct doctor_verdict *v)
{
    char line[100], path[200];
    uint64_t on;
    if (!is_here(d, v))
        return;
    if (!read_line(line, sizeof line, d->sys, "kernel/mm/transparent_hugepage/enabled")) {
        doctor_none(v, "the kernel has no transparent huge pages");
        return;
    }
    snprintf(path, sizeof path, "%s/status", d->host.proc);
    bool of_process = doctor_proc_u64(path, "THP_enabled", &on);
    if (strstr(line, "[always]") == NULL)
        doctor_passed(v, "%s", rd_show_plain(rd_slice_str(line)).s);
    else if (of_process && on == 0)
        doctor_passed(v, "%s, but not for this process", rd_show_plain(rd_slice_str(line)).s);
    else
        doctor_found(v, "transparent_hugepage/enabled is %s", rd_show_plain(rd_slice_str(line)).s);
}

void doctor_judge_swapped(const struct doctor *d, struct doctor_verdict *v)
{
    char path[200];
    uint64_t swap, rss;
    if (!is_here(d, v))
        return;
    snprintf(path, sizeof path, "%s/status", d->host.proc);
    if (!doctor_proc_u64(path, "VmSwap", &swap) || !doctor_proc_u64(path, "VmRSS", &rss))
        doctor_unknown(v, "%s cannot be read", path);
    else if (percent(swap, swap + rss) >= SWAP_PERCENT)
        doctor_found(v, "%s of %s swapped out", rd_show_bytes(swap).s, rd_show_bytes(swap + rss).s);
    else
        doctor_passed(v, "%s swapped out", rd_show_bytes(swap).s);
}
