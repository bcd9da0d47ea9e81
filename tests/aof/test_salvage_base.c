/* A folder whose base is a snapshot that is damaged from its first byte on. */
#include "aof/salvage.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/buf.h"

#define SET "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"

struct folder {
    struct rd_buf base;
    struct rd_buf out[2];
    size_t n_out;
    unsigned n_losses;
    uint64_t first_from;
};

static bool open_in(void *ctx, const struct aof_file *file, struct rd_src **ret, struct rd_err *err)
{
    const struct folder *folder = ctx;
    bool base = file->type == AOF_BASE;
    return rd_src_open_memory(ret, base ? rd_buf_slice(&folder->base) : rd_slice_str(SET SET), NULL,
                              err);
}

static bool create_out(void *ctx, const struct aof_file *file, struct rd_sink **ret,
                       struct rd_err *err)
{
    struct folder *folder = ctx;
    (void)file;
    return rd_sink_open_buf(ret, &folder->out[folder->n_out++], NULL, err);
}

static void on_loss(void *ctx, const struct aof_loss *loss)
{
    struct folder *folder = ctx;
    cr_expect_eq(loss->kind, AOF_LOSS_SNAPSHOT);
    cr_expect_not_null(loss->snapshot);
    cr_expect_str_eq(loss->file, "a.1.base.rdb");
    if (folder->n_losses++ == 0)
        folder->first_from = loss->from;
}

/* `magic`, then twenty keys, with a byte that is none after the tenth. */
static void make_base(struct rd_buf *base, const char *magic)
{
    cr_assert(rd_buf_add(base, magic, 9) && rd_buf_add(base, "\xfe\0", 2));
    for (int i = 0; i < 20; i++) {
        char key[20];
        int n = snprintf(key, sizeof key, "%c%ckey:%02d%cvalue", 0, 6, i, 5);
        cr_assert(rd_buf_add(base, key, (size_t)n));
        if (i == 9)
            cr_assert(rd_buf_add(base, "\xc9", 1));
    }
    cr_assert(rd_buf_add(base, "\xff\0\0\0\0\0\0\0\0", 9));
}

Test(salvage_base, what_its_name_says_is_a_snapshot_is_salvaged_as_one)
{
    static const char *const magics[] = {"REDIS0009", "QQQQQQQQQ"};
    static char base_name[] = "a.1.base.rdb", incr_name[] = "a.1.incr.aof";
    const struct aof_file files[] = {
        {.name = base_name, .seq = 1, .type = AOF_BASE, .start_offset = -1, .end_offset = -1},
        {.name = incr_name, .seq = 1, .type = AOF_INCR, .start_offset = -1, .end_offset = -1}};
    for (size_t i = 0; i < 2; i++) {
        struct folder folder = {0};
        struct aof_manifest in, out;
        struct aof_salvage_result res = AOF_SALVAGE_RESULT();
        struct rd_err err = {0};
        const struct aof_salvage_opts opts = AOF_SALVAGE_OPTS(.open = open_in, .create = create_out,
                                                              .loss = on_loss, .ctx = &folder);
        make_base(&folder.base, magics[i]);
        aof_manifest_init(&in);
        aof_manifest_init(&out);
        cr_assert(aof_manifest_add(&in, &files[0]) && aof_manifest_add(&in, &files[1]));
        cr_assert(aof_salvage(&in, &opts, &out, &res, &err), "%s", err.text);
        cr_expect_eq(res.snapshots, 1);
        cr_expect_eq(res.keys, 20, "%s: %llu", magics[i], (unsigned long long)res.keys);
        cr_expect_eq(res.commands, 2);
        cr_expect_eq(folder.n_losses, 1);
        cr_expect_eq(folder.first_from, 151);
        cr_expect_eq(memcmp(folder.out[0].ptr, "REDIS", 5), 0);
        for (size_t k = 0; k < 2; k++)
            rd_buf_done(&folder.out[k]);
        rd_buf_done(&folder.base);
        aof_manifest_done(&in);
        aof_manifest_done(&out);
    }
}
