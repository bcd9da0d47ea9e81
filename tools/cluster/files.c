/* files.c - `redoubt cluster nodes-conf`: reads the files and compares them. */
#include "tools/cluster/cluster.h"

#include "base/mem.h"

struct reading {
    struct cluster_run *run;
    struct cluster_file *file;
};

/* ---- one file ---- */

static bool read_bytes(struct cluster_run *run, struct cluster_file *file, struct rd_err *err)
{
    struct rd_src *src;
    struct rd_slice s;
    enum rd_src_status status;
    bool ok = true;
    if (!cli_open_in(run->cli, file->path, &src, err))
        return false;
    while (ok && (status = rd_src_need(src, 1, &s)) == RD_SRC_OK) {
        if (file->bytes.len + s.len > CLUSTER_CONF_MAX)
            ok = rd_err_set(err, RD_ERR_LIMIT, CLUSTER_CONF_MAX, "more than %d bytes",
                            CLUSTER_CONF_MAX);
        else if (!rd_buf_add(&file->bytes, s.ptr, s.len))
            ok = rd_err_nomem(err, s.len);
        rd_src_consume(src, s.len);
    }
    if (ok && status == RD_SRC_FAIL) {
        rd_err_adopt(err, rd_src_err(src));
        ok = false;
    }
    cli_close_in(run->cli, src);
    rd_err_origin(err, file->path);
    return ok;
}

static void on_problem(void *ctx, enum cluster_conf_problem problem, uint64_t offset, unsigned line,
                       const char *text)
{
    struct reading *r = ctx;
    if (problem == CLUSTER_CONF_NO_MYSELF && r->file->given_id[0] != '\0')
        text = "no node has the flag myself; the id is given";
    r->file->n_problems++;
    r->file->fatal |= cluster_conf_problem_fatal(problem);
    r->file->is_empty |= problem == CLUSTER_CONF_EMPTY;
    cluster_say_problem(r->run, r->file, problem, offset, line, text);
}

/* The id that the user gives counts more than the flag in the file. */
static void use_given_id(struct cluster_file *file)
{
    struct cluster_conf_node *myself = cluster_conf_myself(&file->conf);
    if (file->given_id[0] == '\0')
        return;
    if (myself != NULL)
        myself->flags &= ~(unsigned)CLUSTER_FLAG_MYSELF;
    struct cluster_conf_node *given = cluster_conf_find(&file->conf, file->given_id);
    if (given != NULL)
        given->flags |= CLUSTER_FLAG_MYSELF;
}

static bool read_file(struct cluster_run *run, struct cluster_file *file, struct rd_err *err)
{
    struct reading r = {.run = run, .file = file};
    struct json_write *json = &run->cli->out;
    if (!read_bytes(run, file, err))
        return false;
    if (run->cli->json) {
        json_obj(json);
        json_put_str(json, "file", file->path);
        json_key(json, "problems");
        json_array(json);
    }
    bool ok = cluster_conf_read(&file->conf, rd_buf_slice(&file->bytes), on_problem, &r, err);
    rd_err_origin(err, file->path);
    use_given_id(file);
    if (run->cli->json && ok) {
        const struct cluster_conf_node *myself = cluster_conf_myself(&file->conf);
        json_end(json);
        json_put_str(json, "node", myself != NULL ? myself->id : NULL);
        json_put_uint(json, "lines", file->conf.n_nodes);
        json_put_bool(json, "fatal", file->fatal);
        json_end(json);
    }
    return ok;
}

/* "ID=FILE", or "FILE". */
static void take_argument(struct cluster_file *file, const char *text)
{
    file->path = text;
    file->node = CLUSTER_NONE;
    if (strlen(text) > CLUSTER_ID_LEN && text[CLUSTER_ID_LEN] == '=' &&
        cluster_is_id(rd_slice(text, CLUSTER_ID_LEN))) {
        memcpy(file->given_id, text, CLUSTER_ID_LEN);
        file->path = text + CLUSTER_ID_LEN + 1;
    }
}

static bool read_files(struct cluster_run *run, struct rd_err *err)
{
    bool ok = true;
    run->n_files = run->cli->n_args - 1;
    run->files = rd_calloc(run->n_files, sizeof *run->files);
    run->views = rd_calloc(run->n_files, sizeof *run->views);
    if (run->files == NULL || run->views == NULL)
        return rd_err_nomem(err, run->n_files * sizeof *run->files);
    if (run->cli->json) {
        json_key(&run->cli->out, "files");
        json_array(&run->cli->out);
    }
    for (size_t i = 0; ok && i < run->n_files; i++) {
        take_argument(&run->files[i], run->cli->args[i + 1]);
        ok = read_file(run, &run->files[i], err);
        run->views[i] = (struct cluster_view){run->files[i].path, &run->files[i].conf};
    }
    if (run->cli->json && ok)
        json_end(&run->cli->out);
    return ok;
}

/* ---- all files ---- */

bool cluster_find_node(const struct cluster_run *run, struct rd_slice id, size_t *ret,
                       struct rd_err *err)
{
    const struct cluster_views *all = &run->all;
    char quoted[100];
    size_t n = 0;
    for (size_t i = 0; i < all->n_nodes; i++) {
        if (id.len <= CLUSTER_ID_LEN && memcmp(all->nodes[i].id, id.ptr, id.len) == 0) {
            *ret = i;
            n++;
        }
    }
    if (n == 1)
        return true;
    rd_err_quote(quoted, sizeof quoted, id);
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s node has the id %s",
                      n == 0 ? "no" : "more than one", quoted);
}

static bool check_addresses(struct cluster_run *run, struct rd_err *err)
{
    for (size_t i = 0; i < run->opts.n_addresses; i++) {
        size_t node;
        const struct cluster_address *address = &run->opts.addresses[i];
        if (!cluster_find_node(run, rd_slice(address->id, address->id_len), &node, err))
            return false;
    }
    return true;
}

static bool apply_preference(struct cluster_run *run, struct rd_err *err)
{
    size_t node;
    if (run->opts.prefer == NULL)
        return true;
    if (!cluster_find_node(run, rd_slice_str(run->opts.prefer), &node, err))
        return false;
    cluster_views_prefer(&run->all, node);
    return true;
}

/* The node of each file. */
static void find_nodes(struct cluster_run *run)
{
    for (size_t i = 0; i < run->n_files; i++) {
        struct cluster_file *file = &run->files[i];
        const struct cluster_conf_node *myself = cluster_conf_myself(&file->conf);
        const char *id = file->given_id[0] != '\0' ? file->given_id
                         : myself != NULL          ? myself->id
                                                   : "";
        file->node = cluster_views_find(&run->all, id);
    }
}

static size_t count_problems(const struct cluster_run *run, size_t *ret_fatal)
{
    size_t n = cluster_count(run, CLUSTER_WARNING);
    *ret_fatal = 0;
    for (size_t i = 0; i < run->n_files; i++) {
        n += run->files[i].n_problems;
        *ret_fatal += run->files[i].fatal;
    }
    return n;
}

static void say_verdict(const struct cluster_run *run, size_t n, size_t fatal, size_t written)
{
    struct json_write *json = &run->cli->out;
    const char *verdict = n == 0 ? "sound" : "problems";
    if (run->cli->json) {
        json_put_str(json, "verdict", verdict);
        json_put_uint(json, "n_problems", n);
        json_put_uint(json, "n_written", written);
        return;
    }
    if (run->cli->quiet)
        return;
    if (n == 0)
        printf("verdict: %zu file%s, which agree%s\n", run->n_files, rd_show_plural(run->n_files),
               run->n_files == 1 ? "s with itself" : "");
    else
        printf("verdict: %zu problem%s", n, rd_show_plural(n));
    if (n > 0 && fatal > 0)
        printf("; servers cannot use %zu of the files", fatal);
    if (n > 0)
        printf("\n");
    if (written > 0)
        printf("%zu repaired file%s written\n", written, rd_show_plural(written));
    else if (n > 0 && !run->opts.fix && run->opts.output == NULL)
        cli_note(run->cli, "--output DIR writes repaired files");
}

static bool compare(struct cluster_run *run, struct rd_err *err)
{
    return cluster_views_compare(&run->all, run->views, run->n_files, err) &&
           check_addresses(run, err) && apply_preference(run, err);
}

static bool work(struct cluster_run *run, int *ret_status, struct rd_err *err)
{
    size_t fatal, written = 0, left = 0;
    bool fix = run->opts.fix || run->opts.output != NULL;
    if (!read_files(run, err) || !compare(run, err))
        return false;
    find_nodes(run);
    cluster_report_nodes(run);
    cluster_report_findings(run);
    size_t n = count_problems(run, &fatal);
    if (fix && !cluster_fix(run, &written, &left, err))
        return false;
    say_verdict(run, n, fatal, written);
    if (written > 0 && left > 0 && !run->cli->json)
        cli_warn(run->cli, "%zu problem%s remain%s: run it again with the repaired files", left,
                 rd_show_plural(left), left == 1 ? "s" : "");
    *ret_status = (written > 0 ? left : n) == 0 ? CLI_OK : CLI_FINDINGS;
    return true;
}

int cluster_nodes_conf(struct cluster_run *run)
{
    struct rd_err err = {0};
    int status;
    if (!work(run, &status, &err))
        status = cli_fail(run->cli, &err);
    cluster_views_done(&run->all);
    for (size_t i = 0; i < run->n_files && run->files != NULL; i++) {
        cluster_conf_done(&run->files[i].conf);
        rd_buf_done(&run->files[i].bytes);
    }
    rd_free(run->files);
    rd_free(run->views);
    return status;
}
