/* What is counted of commands: percentiles and levels as redis-server 7.0 reported them for the
 * same durations, errors by their code, means by second; and which arguments are secrets. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "base/buf.h"
#include "server/session/redact.h"
#include "server/loop/stats.h"

static const struct engine_command *command(const char *name)
{
    return engine_command_find_path(rd_slice_str(name));
}

static void expect_text(struct rd_buf *got, const char *want)
{
    rd_buf_add_byte(got, 0);
    cr_expect_str_eq((const char *)got->ptr, want);
    rd_buf_done(got);
    *got = (struct rd_buf){0};
}

Test(stats, percentiles_have_the_digits_of_redis)
{
    static const double percentiles[] = {0, 1.5, 33.333333, 99.9, 100};
    struct stats stats;
    struct rd_buf out = {0};
    stats_init(&stats);
    stats_ran(&stats, command("get"), 198, false, true);
    stats_info_latency(&stats, (const double[]){50, 99, 99.9}, 3, &out);
    expect_text(&out, "latency_percentiles_usec_get:p50=198.655,p99=198.655,p99.9=198.655\r\n");
    stats_reset(&stats);
    stats_ran(&stats, command("debug"), 300112, false, true);
    stats_ran(&stats, command("debug"), 700112, false, true);
    stats_ran(&stats, command("debug"), 1200130, false, true);
    stats_info_latency(&stats, percentiles, 5, &out);
    expect_text(&out, "latency_percentiles_usec_debug:p0=299892.736,p1.5=301989.887,"
                      "p33.333333=301989.887,p99.9=1002438.655,p100=1002438.655\r\n");
    stats_done(&stats);
}

Test(stats, levels_double_and_count_the_calls_below)
{
    struct stats stats;
    struct stats_level levels[STATS_LEVELS];
    stats_init(&stats);
    const struct engine_command *debug = command("debug");
    stats_ran(&stats, debug, 300112, false, true);
    stats_ran(&stats, debug, 700112, false, true);
    stats_ran(&stats, debug, 1200130, false, true);
    const struct stats_histogram *h = stats.by_command[debug->id].latency;
    cr_assert_eq(stats_latency_levels(h, levels, STATS_LEVELS), 2);
    cr_expect_eq(levels[0].us, 541065);
    cr_expect_eq(levels[0].count, 1);
    cr_expect_eq(levels[1].us, 1073741);
    cr_expect_eq(levels[1].count, 3);
    cr_expect_eq(stats_latency_calls(h), 3);
    stats_done(&stats);
}

Test(stats, every_duration_is_in_one_level)
{
    struct stats stats;
    struct stats_level levels[STATS_LEVELS];
    stats_init(&stats);
    const struct engine_command *get = command("get");
    uint64_t n = 0;
    for (uint64_t us = 0; us < 5000000; us = us * 9 / 8 + 1, n++)
        stats_ran(&stats, get, us, false, true);
    const struct stats_histogram *h = stats.by_command[get->id].latency;
    size_t n_levels = stats_latency_levels(h, levels, STATS_LEVELS);
    cr_expect_eq(levels[n_levels - 1].count, n);
    for (size_t i = 1; i < n_levels; i++) {
        cr_expect_gt(levels[i].us, levels[i - 1].us);
        cr_expect_gt(levels[i].count, levels[i - 1].count);
    }
    stats_done(&stats);
}

Test(stats, commands_and_errors_are_counted_by_name)
{
    struct stats stats;
    struct rd_buf out = {0};
    stats_init(&stats);
    stats_ran(&stats, command("client|id"), 3, false, false);
    stats_ran(&stats, command("client|id"), 2, true, false);
    stats_rejected(&stats, command("get"));
    stats_info_commands(&stats, &out);
    rd_buf_add_byte(&out, 0);
    cr_expect_not_null(strstr((const char *)out.ptr,
                              "cmdstat_get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,"
                              "failed_calls=0\r\n"));
    cr_expect_not_null(strstr((const char *)out.ptr,
                              "cmdstat_client|id:calls=2,usec=5,usec_per_call=2.50,"
                              "rejected_calls=0,failed_calls=1\r\n"));
    rd_buf_reset(&out);
    stats_error(&stats, "WRONGTYPE Operation");
    stats_error(&stats, "ERR x");
    stats_error(&stats, "ERR y");
    stats_error(&stats, "nothing-before-a-blank");
    stats_error(&stats, "acodethatisfartoolongtobeacodeofanerror x");
    stats_info_errors(&stats, &out);
    expect_text(&out, "errorstat_ERR:count=4\r\nerrorstat_WRONGTYPE:count=1\r\n");
    cr_expect_eq(stats.total_errors, 5);
    stats_done(&stats);
}

Test(stats, no_flood_of_codes_takes_memory)
{
    struct stats stats;
    struct rd_buf out = {0};
    char text[32];
    stats_init(&stats);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "E%d x", i);
        stats_error(&stats, text);
    }
    stats_info_errors(&stats, &out);
    size_t lines = 0;
    for (size_t i = 0; i < out.len; i++)
        lines += out.ptr[i] == '\n';
    cr_expect_eq(lines, 128);
    rd_buf_done(&out);
    stats_done(&stats);
}

Test(stats, a_mean_by_second_is_over_sixteen_samples)
{
    struct stats stats;
    stats_init(&stats);
    int64_t now_us = 1000000;
    stats_sample(&stats, STATS_COMMANDS, 0, now_us);
    for (uint64_t i = 1; i <= 16; i++)
        stats_sample(&stats, STATS_COMMANDS, i * 50, now_us += 100000);
    cr_expect_eq(stats_per_second(&stats, STATS_COMMANDS), 500);
    stats_sample(&stats, STATS_COMMANDS, 800, now_us); /* no time went by */
    cr_expect_eq(stats_per_second(&stats, STATS_COMMANDS), 468);
    stats_done(&stats);
}

Test(redact, passwords_are_secrets_and_nothing_else_is)
{
    static const struct {
        const char *name;
        const char *words[8];
        const char *secrets; /* of each word */
    } cases[] = {
        {"auth", {"AUTH", "p"}, "-x"},
        {"auth", {"auth", "u", "p"}, "-xx"},
        {"hello", {"HELLO", "3", "AUTH", "u", "p", "SETNAME", "n"}, "---xx--"},
        {"hello", {"HELLO", "3", "SETNAME", "auth"}, "----"},
        {"config|set", {"CONFIG", "SET", "maxmemory", "1", "requirepass", "p"}, "-----x"},
        {"acl|setuser", {"ACL", "SETUSER", "u", "on"}, "--xx"},
        {"migrate", {"MIGRATE", "h", "1", "k", "0", "9", "AUTH2", "u"}, "-------x"},
        {"set", {"SET", "auth", "p"}, "---"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rd_slice argv[8];
        size_t argc = strlen(cases[i].secrets);
        for (size_t k = 0; k < argc; k++)
            argv[k] = rd_slice_str(cases[i].words[k]);
        const struct engine_command *cmd = command(cases[i].name);
        for (size_t k = 0; k < argc; k++) {
            bool secret = redact_may_have(cmd) && redact_is_secret(cmd, argc, argv, k);
            cr_expect_eq(secret, cases[i].secrets[k] == 'x', "%s %zu", cases[i].name, k);
        }
    }
}
