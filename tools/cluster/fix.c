/* fix.c - `redoubt cluster nodes-conf --fix` and --output: writes the files that the nodes should
 * have. Everything is decided and checked before the first file is written. */
#include "tools/cluster/cluster.h"

#include "base/mem.h"
#include "tools/cli/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct repaired {
    struct cluster_conf conf;
    struct rd_buf text;
};

struct fix {
    struct cluster_run *run;
    struct repaired *repaired; /* of each file */
    char suffix[CLI_SUFFIX_MAX];
};

/* ---- what forbids it ---- */

/* The nodes to which a file can belong: those of which no file is known. */
static bool refuse_unknown(const struct cluster_run *run, const struct cluster_file *file,
                           struct rd_err *err)
{
    const struct cluster_views *all = &run->all;
    struct rd_buf text = {0};
    for (size_t i = 0; i < all->n_nodes; i++) {
        if (all->nodes[i].own_view == CLUSTER_NONE && text.len < RD_ERR_TEXT_MAX - 80)
            rd_buf_printf(&text, "%s%s", text.len > 0 ? " or " : "", all->nodes[i].id);
    }
    if (text.len > 0)
        cli_hint(run->cli, "give its id as ID=FILE; it can be %.*s", (int)text.len,
                 (const char *)text.ptr);
    else
        cli_hint(run->cli, "give its id as ID=FILE");
    rd_buf_done(&text);
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
               "the file does not contain to which node it belongs");
    rd_err_origin(err, file->path);
    return false;
}

static bool refuse_finding(const struct cluster_run *run, const struct cluster_finding *f,
                           struct rd_err *err)
{
    const char *name = f->view != CLUSTER_NONE ? run->all.views[f->view].name : NULL;
    switch (f->kind) {
    case CLUSTER_FINDING_SAME_SELF:
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "another file is of the same node");
        cli_hint(run->cli, "leave one of the two out");
        break;
    case CLUSTER_FINDING_STRANGERS:
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the file is of another cluster");
        break;
    case CLUSTER_FINDING_DISPUTED:
        if (run->all.owner[f->first] != 0)
            return true;
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "which node owns the slots %u-%u cannot be decided", f->first, f->last);
        cli_hint(run->cli,
                 "--prefer ID gives them to a node; the other node can have keys in them");
        break;
    default:
        return true;
    }
    if (name != NULL)
        rd_err_origin(err, name);
    return false;
}

/* Servers lock the file as long as they run: this one, or that of their start. */
static bool is_free(const struct cluster_file *file, struct rd_err *err)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 ? flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
                      : rd_err_sys(err, errno, "cannot open the file");
    if (fd >= 0 && !ok) {
        rd_err_set(err, RD_ERR_LOCKED, RD_NO_OFFSET, "a server is using the file");
        holder_name(err, file->path);
    }
    if (fd >= 0)
        close(fd);
    ok = ok && holder_has_none_replaced(file->path, err);
    rd_err_origin(err, file->path);
    return ok;
}

static bool may_fix(struct cluster_run *run, struct rd_err *err)
{
    for (size_t i = 0; i < run->n_files; i++) {
        if (run->files[i].node == CLUSTER_NONE)
            return refuse_unknown(run, &run->files[i], err);
        if (run->opts.fix && strcmp(run->files[i].path, "-") == 0)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "standard input cannot be changed");
        if (run->opts.fix && !is_free(&run->files[i], err)) {
            cli_hint(run->cli, "stop the server first");
            return false;
        }
    }
    for (size_t i = 0; i < run->all.n_findings; i++) {
        if (!refuse_finding(run, &run->all.findings[i], err))
            return false;
    }
    return true;
}

/* ---- what the files should contain ---- */

static bool set_addresses(const struct cluster_run *run, struct cluster_conf *conf,
                          struct rd_err *err)
{
    for (size_t i = 0; i < run->opts.n_addresses; i++) {
        const struct cluster_address *address = &run->opts.addresses[i];
        size_t at;
        if (!cluster_find_node(run, rd_slice(address->id, address->id_len), &at, err))
            return false;
        struct cluster_conf_node *node = cluster_conf_find(conf, run->all.nodes[at].id);
        unsigned distance =
            node->bus_port > node->port ? node->bus_port - node->port : CLUSTER_BUS_DISTANCE;
        memcpy(node->host, address->host, sizeof node->host);
        node->port = address->port;
        node->bus_port = address->bus_port != 0 ? address->bus_port : address->port + distance;
        node->flags &= ~(unsigned)CLUSTER_FLAG_NO_ADDRESS;
        if (node->bus_port > 65535)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "the bus port of %s would be %u: give it as HOST:PORT@BUSPORT",
                              node->id, node->bus_port);
    }
    return true;
}

static bool make_repaired(struct fix *fix, size_t i, struct rd_err *err)
{
    const struct cluster_run *run = fix->run;
    const struct cluster_file *file = &run->files[i];
    struct repaired *r = &fix->repaired[i];
    uint64_t vote = file->conf.has_vars ? file->conf.last_vote_epoch : run->all.current_epoch;
    return cluster_views_conf(&run->all, file->node, vote, &r->conf, err) &&
           set_addresses(run, &r->conf, err) &&
           (cluster_conf_write(&r->conf, &r->text) || rd_err_nomem(err, r->text.len));
}

/* Whether a server would read the same from both. */
static bool is_same(const struct cluster_file *file, const struct repaired *r)
{
    struct rd_buf now = {0};
    bool same = file->n_problems == 0 && cluster_conf_write(&file->conf, &now) &&
                rd_slice_eq(rd_buf_slice(&now), rd_buf_slice(&r->text));
    rd_buf_done(&now);
    return same;
}

/* ---- writing ---- */

static bool write_file(struct cluster_run *run, const char *path, bool force, struct rd_slice text,
                       struct rd_err *err)
{
    struct rd_sink *sink;
    if (!cli_open_out_as_is(run->cli, path, force, false, &sink, err))
        return false;
    if (!rd_sink_write(sink, text.ptr, text.len)) {
        rd_err_adopt(err, rd_sink_err(sink));
        rd_sink_abort(sink);
        return false;
    }
    return rd_sink_close(sink, err);
}

static bool join(char *dst, size_t size, const char *a, const char *b, struct rd_err *err)
{
    int len = snprintf(dst, size, "%s%s", a, b);
    return (len >= 0 && (size_t)len < size) || rd_err_sys(err, ENAMETOOLONG, "%.100s", a);
}

static bool replace(struct fix *fix, struct cluster_file *file, struct rd_slice text,
                    struct rd_err *err)
{
    char copy[PATH_MAX];
    if (!join(copy, sizeof copy, file->path, fix->suffix, err))
        return false;
    if (!fix->run->opts.no_copy &&
        !write_file(fix->run, copy, false, rd_buf_slice(&file->bytes), err))
        return false;
    return write_file(fix->run, file->path, true, text, err);
}

static bool write_one(struct fix *fix, size_t i, struct rd_err *err)
{
    struct cluster_run *run = fix->run;
    struct cluster_file *file = &run->files[i];
    struct rd_slice text = rd_buf_slice(&fix->repaired[i].text);
    if (run->opts.fix)
        return join(file->written, sizeof file->written, file->path, "", err) &&
               replace(fix, file, text, err);
    char name[CLUSTER_ID_LEN + 20];
    snprintf(name, sizeof name, "/nodes-%s.conf", run->all.nodes[file->node].id);
    return join(file->written, sizeof file->written, run->opts.output, name, err) &&
           write_file(run, file->written, run->opts.force, text, err);
}

static bool make_folder(struct cluster_run *run, struct rd_err *err)
{
    if (run->opts.output == NULL || mkdir(run->opts.output, 0700) == 0 || errno == EEXIST)
        return true;
    rd_err_sys(err, errno, "cannot create the folder");
    rd_err_origin(err, run->opts.output);
    return false;
}

static bool ask(const struct fix *fix, size_t n)
{
    char question[100];
    const struct cluster_tool_opts *opts = &fix->run->opts;
    snprintf(question, sizeof question, "Replace %zu of %zu files%s?", n, fix->run->n_files,
             opts->no_copy ? ", without a copy" : "");
    return !opts->fix || n == 0 || cli_ask(fix->run->cli, opts->yes, question);
}

static void say_written(const struct cluster_run *run, const struct cluster_file *file)
{
    struct json_write *json = &run->cli->out;
    if (run->cli->json) {
        json_obj(json);
        json_put_str(json, "file", file->path);
        json_put_str(json, "node", run->all.nodes[file->node].id);
        json_put_str(json, "written", file->written);
        json_end(json);
    } else if (!run->cli->quiet) {
        struct rd_shown_name to = rd_show_plain(rd_slice_str(file->written));
        if (run->opts.fix)
            printf("%s: repaired\n", to.s);
        else
            printf("%s: written to %s\n", rd_show_plain(rd_slice_str(file->path)).s, to.s);
    }
}

/* With --output, all files: the user needs the whole set. With --fix, those that change. */
static bool is_wanted(const struct fix *fix, size_t i)
{
    return !fix->run->opts.fix || !is_same(&fix->run->files[i], &fix->repaired[i]);
}

static bool write_all(struct fix *fix, size_t *ret_n, struct rd_err *err)
{
    struct cluster_run *run = fix->run;
    size_t wanted = 0;
    for (size_t i = 0; i < run->n_files; i++)
        wanted += is_wanted(fix, i);
    if (!ask(fix, wanted))
        return true;
    if (!make_folder(run, err))
        return false;
    if (run->cli->json) {
        json_key(&run->cli->out, "repaired");
        json_array(&run->cli->out);
    }
    for (size_t i = 0; i < run->n_files; i++) {
        if (!is_wanted(fix, i))
            continue;
        if (!write_one(fix, i, err))
            return false;
        say_written(run, &run->files[i]);
        ++*ret_n;
    }
    if (run->cli->json)
        json_end(&run->cli->out);
    return true;
}

/* What is still wrong after the repair: slots without an owner, for example. */
static bool compare_again(const struct fix *fix, size_t *ret_left, struct rd_err *err)
{
    const struct cluster_run *run = fix->run;
    struct cluster_run again = {.cli = run->cli};
    struct cluster_view *views = rd_calloc(run->n_files, sizeof *views);
    if (views == NULL)
        return rd_err_nomem(err, run->n_files * sizeof *views);
    for (size_t i = 0; i < run->n_files; i++)
        views[i] = (struct cluster_view){run->files[i].path, &fix->repaired[i].conf};
    bool ok = cluster_views_compare(&again.all, views, run->n_files, err);
    if (ok) {
        *ret_left = cluster_count(&again, CLUSTER_WARNING);
        cluster_views_done(&again.all);
    }
    rd_free(views);
    return ok;
}

bool cluster_fix(struct cluster_run *run, size_t *ret_n, size_t *ret_left, struct rd_err *err)
{
    struct fix fix = {.run = run, .repaired = rd_calloc(run->n_files, sizeof *fix.repaired)};
    bool ok = fix.repaired != NULL || rd_err_nomem(err, run->n_files * sizeof *fix.repaired);
    *ret_n = 0;
    cli_save_suffix(fix.suffix);
    ok = ok && may_fix(run, err);
    for (size_t i = 0; ok && i < run->n_files; i++)
        ok = make_repaired(&fix, i, err);
    ok = ok && compare_again(&fix, ret_left, err) && write_all(&fix, ret_n, err);
    for (size_t i = 0; i < run->n_files && fix.repaired != NULL; i++) {
        cluster_conf_done(&fix.repaired[i].conf);
        rd_buf_done(&fix.repaired[i].text);
    }
    rd_free(fix.repaired);
    return ok;
}
