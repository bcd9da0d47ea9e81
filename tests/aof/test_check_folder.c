/* What a check says of a log in a folder: its manifest, the times in its files, their names. */
#include "aof/check.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#define SET "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"

enum { FINDINGS_MAX = 300 };

struct folder {
    struct rd_slice base, incr;
    char findings[FINDINGS_MAX]; /* "id@offset" each */
};

static bool open_in(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err)
{
    const struct folder *folder = ctx;
    return rd_src_open_memory(ret, file->type == AOF_BASE ? folder->base : folder->incr, NULL, err);
}

static void note_finding(void *ctx, const struct aof_finding *f)
{
    struct folder *folder = ctx;
    size_t len = strlen(folder->findings);
    snprintf(folder->findings + len, sizeof folder->findings - len, "%s%s@%lld", len > 0 ? " " : "",
             f->word, (long long)f->offset);
}

static void check(struct folder *folder, const char *manifest, const char *const *names, size_t n,
                  struct aof_check_result *ret)
{
    const struct aof_check_opts opts =
        AOF_CHECK_OPTS(.open = open_in, .finding = note_finding, .ctx = folder, .names = names,
                       .n_names = n, .prefix = "a", .single_thread = true);
    struct rd_src *src;
    struct rd_err err = {0};
    folder->findings[0] = '\0';
    *ret = AOF_CHECK_RESULT();
    cr_assert(rd_src_open_memory(&src, rd_slice_str(manifest), NULL, NULL));
    cr_assert(aof_check(src, &opts, ret, &err), "%s", err.text);
    rd_src_close(src);
}

static const char two_files[] = "file a.1.base.aof seq 1 type b\nfile a.1.incr.aof seq 1 type i\n";

static void expect(const char *manifest, const char *base, const char *incr, const char *findings,
                   enum aof_verdict verdict)
{
    struct folder folder = {.base = rd_slice_str(base), .incr = rd_slice_str(incr)};
    struct aof_check_result res = AOF_CHECK_RESULT();
    check(&folder, manifest, NULL, 0, &res);
    cr_expect_str_eq(folder.findings, findings, "%s: %s", manifest, folder.findings);
    cr_expect_eq(res.verdict, verdict, "%s: %d", manifest, res.verdict);
    aof_check_done(&res);
}

Test(check_folder, a_base_that_must_be_a_snapshot_is_never_empty_and_other_files_may_be)
{
    static const char rdb[] = "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n";
    static const char alone[] = "file a.1.base.rdb seq 1 type b\n";
    expect(rdb, "", SET, "truncated@0", AOF_VERDICT_DAMAGED);
    expect(alone, "", "", "truncated@0", AOF_VERDICT_DAMAGED);
    expect(two_files, "", SET, "empty-file@-1", AOF_VERDICT_SOUND);
    expect(two_files, SET, "", "empty-file@-1", AOF_VERDICT_SOUND);
    expect(rdb, SET, "", "empty-file@-1", AOF_VERDICT_SOUND); /* servers look at the content */
    /* Cutting other bytes to nothing would not repair them. */
    expect(alone, "RED", "", "truncated@3", AOF_VERDICT_DAMAGED);
    expect(alone, "\1\2\3 no magic", "", "corrupt@0", AOF_VERDICT_DAMAGED);
}

Test(check_folder, a_type_that_no_version_has_is_damage)
{
    static const char rdb[] = "file a.1.base.rdb seq 1 type b\n";
    static const char zeros[] = "REDIS0010\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x72k";
    static const char none[] = "REDIS0010\0\1a\1b\x72k";
    static const char newer[] = "REDIS0016\0\1a\1b\x72k";
    struct folder folder = {.base = rd_slice(zeros, sizeof zeros - 1)};
    struct aof_check_result res = AOF_CHECK_RESULT();
    check(&folder, rdb, NULL, 0, &res);
    cr_expect_eq(res.verdict, AOF_VERDICT_DAMAGED, "%s", folder.findings);
    aof_check_done(&res);
    folder.base = rd_slice(none, sizeof none - 1);
    check(&folder, rdb, NULL, 0, &res);
    cr_expect_eq(res.verdict, AOF_VERDICT_DAMAGED, "%s", folder.findings);
    aof_check_done(&res);
    folder.base = rd_slice(newer, sizeof newer - 1);
    check(&folder, rdb, NULL, 0, &res);
    cr_expect_eq(res.verdict, AOF_VERDICT_UNSUPPORTED, "%s", folder.findings);
    aof_check_done(&res);
}

Test(check_folder, a_base_that_is_newer_than_what_follows_it_is_reported)
{
    struct folder folder = {.base = rd_slice_str("#TS:1000\r\n" SET),
                            .incr = rd_slice_str("#TS:997\r\n" SET)};
    struct aof_check_result res = AOF_CHECK_RESULT();
    check(&folder, two_files, NULL, 0, &res);
    cr_expect_str_eq(folder.findings, "time-goes-back@0 base-newer@-1");
    cr_expect_eq(res.verdict, AOF_VERDICT_WARNED);
    aof_check_done(&res);
    folder.incr = rd_slice_str("#TS:998\r\n" SET); /* clocks may differ by two seconds */
    check(&folder, two_files, NULL, 0, &res);
    cr_expect_str_eq(folder.findings, "time-goes-back@0");
    aof_check_done(&res);
}

/* Saved in the second 67305985. */
Test(check_folder, the_time_of_a_snapshot_is_its_ctime)
{
    static const char base[] = "REDIS0009\xfa\5ctime\xc2\1\2\3\4\xfe\0\0\1k\1v\xff\0\0\0\0\0\0\0\0";
    struct folder folder = {.base = rd_slice(base, sizeof base - 1),
                            .incr = rd_slice_str("#TS:67305900\r\n" SET)};
    struct aof_check_result res = AOF_CHECK_RESULT();
    check(&folder, two_files, NULL, 0, &res);
    cr_expect_str_eq(folder.findings, "checksum-disabled@29 base-newer@-1");
    cr_expect_eq(res.files[0]->saved, 67305985);
    aof_check_done(&res);
}

Test(check_folder, history_is_named_and_not_read)
{
    static const char *const names[] = {"a.1.base.aof", "a.1.incr.aof", "a.7.incr.aof"};
    struct folder folder = {.base = rd_slice_str(SET), .incr = rd_slice_str(SET)};
    struct aof_check_result res = AOF_CHECK_RESULT();
    check(&folder,
          "file a.1.base.aof seq 1 type b\nfile a.7.incr.aof seq 7 type h\n"
          "file a.1.incr.aof seq 1 type i\n",
          names, 3, &res);
    cr_expect_str_eq(folder.findings, "history-file@-1");
    cr_expect(res.n_files == 2 && res.commands == 2);
    aof_check_done(&res);
}

Test(check_folder, a_manifest_that_servers_refuse_is_bad_although_its_files_are_sound)
{
    struct folder folder = {.base = rd_slice_str(SET), .incr = rd_slice_str(SET)};
    struct aof_check_result res = AOF_CHECK_RESULT();
    check(&folder,
          "file a.1.base.aof seq 1 type b\nfile a.2.incr.aof seq 2 type i\n"
          "file a.1.incr.aof seq 1 type i\n",
          NULL, 0, &res);
    cr_expect_str_eq(folder.findings, "manifest-seq-order@84");
    cr_expect_eq(res.verdict, AOF_VERDICT_BAD_MANIFEST);
    cr_expect_eq(res.errors, 1);
    aof_check_done(&res);
}

Test(check_folder, verdicts_and_contents_have_words)
{
    static const char *const words[] = {
#define X(name, number, word) [number] = word,
        AOF_VERDICTS(X)
#undef X
    };
    for (int v = AOF_VERDICT_SOUND; v <= AOF_VERDICT_DAMAGED; v++)
        cr_expect_str_eq(aof_verdict_word((enum aof_verdict)v), words[v]);
    cr_expect_str_eq(aof_content_name(AOF_EMPTY), "empty");
    cr_expect_str_eq(aof_content_name(AOF_RESP), "commands");
    cr_expect_str_eq(aof_content_name(AOF_SNAPSHOT), "snapshot");
}
