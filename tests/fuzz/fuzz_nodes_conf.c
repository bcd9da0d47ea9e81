/* fuzz_nodes_conf.c - the reader of nodes.conf takes any bytes. What it took is repaired, and
 * written so that it reads back.
 */
#include "cluster/views.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t size;
    bool fatal;
};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_nodes_conf: %s\n", what);
    abort();
}

static void note(void *ctx, enum cluster_conf_problem problem, uint64_t offset, unsigned line,
                 const char *text)
{
    struct seen *seen = ctx;
    (void)line;
    check(offset <= seen->size && text[0] != '\0', "place of a problem");
    seen->fatal |= cluster_conf_problem_fatal(problem);
}

/* What is written reads back without a fatal problem, and as the same. */
static void write_back(const struct cluster_conf *conf)
{
    struct rd_buf text = {0}, again_text = {0};
    struct cluster_conf again;
    struct rd_err err = {0};
    check(cluster_conf_write(conf, &text), "out of memory");
    check(cluster_conf_read(&again, rd_buf_slice(&text), NULL, NULL, &err), "cannot be read back");
    check(cluster_conf_write(&again, &again_text), "out of memory");
    check(rd_slice_eq(rd_buf_slice(&text), rd_buf_slice(&again_text)), "other when read back");
    cluster_conf_done(&again);
    rd_buf_done(&text);
    rd_buf_done(&again_text);
}

/* The repaired file of every node agrees with the views. */
static void repair(const struct cluster_conf *conf)
{
    struct cluster_view view = {"input", conf};
    struct cluster_views all;
    struct rd_err err = {0};
    check(cluster_views_compare(&all, &view, 1, &err), "cannot be compared");
    for (size_t i = 0; i < all.n_nodes && i < 4; i++) {
        struct cluster_conf fixed;
        check(cluster_views_conf(&all, i, 1, &fixed, &err), "cannot be repaired");
        check(fixed.n_nodes == all.n_nodes, "nodes were lost");
        write_back(&fixed);
        cluster_conf_done(&fixed);
    }
    cluster_views_done(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rd_slice text = rd_slice(data, size);
    struct seen seen = {.size = size};
    struct cluster_conf strict, all;
    struct rd_err err = {0};
    bool ok = cluster_conf_read(&strict, text, NULL, NULL, &err);
    check(ok == (err.code == RD_ERR_OK), "failure without an error");
    check(cluster_conf_read(&all, text, note, &seen, NULL),
          "problems stop a reader that reports them");
    check(ok == !seen.fatal, "a file is fatal and is not");
    if (ok)
        write_back(&strict);
    repair(&all);
    cluster_conf_done(&strict);
    cluster_conf_done(&all);
    return 0;
}
