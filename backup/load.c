#include "backup/load.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backup/keeper.h"
#include "backup/system.h"
#include "base/num.h"
#include "base/pump.h"
#include "base/show.h"
#include "client/info.h"
#include "client/peer.h"
#include "data/sound.h"
#include "data/spool.h"
#include "rdb/version.h"

enum {
    WAIT_MS = 20,
    ASK_TIMEOUT_MS = 5000,
    SILENCE_MS = 600000, /* a server that gives no answer for so long hangs */
    LOG_MAX = 65536,
    DATABASES_MIN = 16,
    NOT_STARTED = 127
};

#define LOG_FOLDER "appendonlydir"

/* One start of the server. */
struct attempt {
    struct backup_load *load;
    struct backup_keeper keeper;
    struct archive_manifest expected; /* only dbs: what the server should have */
    const struct archive_file *log;   /* the manifest of the log; NULL: a snapshot */
    bool no_memory;
};

/* ---- files ---- */

static bool write_file(struct attempt *a, const struct archive_file *file, const char *name,
                       struct rd_err *err)
{
    const struct rd_sink_opts opts = RD_SINK_OPTS(.no_sync = true);
    const struct backup_load *load = a->load;
    char path[PATH_MAX];
    struct rd_src *src;
    snprintf(path, sizeof path, "%s/%s", a->keeper.folder, name);
    return archive_set_open(load->repo, load->set, file, load->ring, &src, err) &&
           rd_pump_to_file(src, path, &opts, err);
}

static void count_key(void *ctx, const struct rdb_event *ev)
{
    struct attempt *a = ctx;
    if (ev->kind != RDB_KEY)
        return;
    struct archive_db *db = archive_manifest_db(&a->expected, ev->key.db);
    a->no_memory |= db == NULL;
    if (db != NULL)
        db->keys++;
}

static void warn_version(const struct attempt *a, const char *name,
                         const struct rdb_check_result *res)
{
    bool valkey = res->dialect == RDB_VALKEY;
    if (res->version > (valkey ? RDB_VERSION_VALKEY_WHOLE : RDB_VERSION_REDIS_WHOLE))
        rd_watch_warn(a->load->watch, "%s: %s is read as far as its types are known", name,
                      rdb_version_text(res->dialect, res->version).s);
}

static bool count_in(struct attempt *a, struct rd_src *src, const char *name, struct rd_err *err)
{
    struct sound sound = {.name = name, .event = count_key, .ctx = a};
    if (!backup_random(sound.seed, sizeof sound.seed, err) || !sound_check(&sound, src, err))
        return false;
    warn_version(a, name, &sound.res);
    return !a->no_memory || rd_err_nomem(err, sizeof(struct archive_db));
}

static bool count_keys(struct attempt *a, const char *name, struct rd_err *err)
{
    char path[PATH_MAX];
    struct rd_src *src;
    snprintf(path, sizeof path, "%s/%s", a->keeper.folder, name);
    if (!rd_src_open_file(&src, path, NULL, err))
        return false;
    bool ok = count_in(a, src, name, err);
    rd_src_close(src);
    return ok;
}

static bool run_log(struct backup_load *load, struct spool *spool, struct rd_err *err)
{
    struct backup_stored_log log = {.watch = load->watch,
                                    .repo = load->repo,
                                    .set = load->set,
                                    .ring = load->ring,
                                    .now_ms = load->now_ms};
    struct rd_sink *sink;
    if (!spool_sink(spool, &sink, err))
        return false;
    bool ok = backup_stored_log_save(&log, sink, err);
    if (!ok) {
        rd_sink_abort(sink);
        return false;
    }
    load->counts = log.counts;
    load->counted = true;
    return rd_sink_close(sink, err);
}

static bool count_keys_of_log(struct attempt *a, struct rd_err *err)
{
    struct spool spool = {0};
    struct rd_src *src = NULL;
    bool ok = run_log(a->load, &spool, err) && spool_source(&spool, LOG_FOLDER, &src, err) &&
              count_in(a, src, LOG_FOLDER, err);
    rd_src_close(src);
    spool_done(&spool);
    return ok;
}

static bool lay_out_log(struct attempt *a, struct rd_err *err)
{
    const struct archive_manifest *m = &a->load->set->m;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" LOG_FOLDER, a->keeper.folder);
    if (mkdir(path, 0700) != 0)
        return rd_err_sys(err, errno, "cannot create a temporary folder");
    for (size_t i = 0; i < m->n_files; i++) {
        snprintf(path, sizeof path, LOG_FOLDER "/%s", m->files[i].name);
        if (!write_file(a, &m->files[i], path, err))
            return false;
    }
    return count_keys_of_log(a, err);
}

/* ---- the command line ---- */

/* "redoubt-server" in the folder of this program, else by $PATH. */
static void find_program(char ret[PATH_MAX])
{
    static const char name[] = "redoubt-server";
    ssize_t len = readlink("/proc/self/exe", ret, PATH_MAX - sizeof name - 1);
    ret[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(ret, '/');
    if (slash != NULL)
        strcpy(slash + 1, name);
    if (slash == NULL || access(ret, X_OK) != 0)
        strcpy(ret, name);
}

static bool add_pair(struct backup_keeper_args *args, const char *name, const char *value,
                     struct rd_err *err)
{
    return backup_keeper_add(args, name, err) && backup_keeper_add(args, value, err);
}

static bool add_log(const struct attempt *a, struct backup_keeper_args *args, struct rd_err *err)
{
    static const char tail[] = ".manifest";
    char name[ARCHIVE_FILE_NAME_MAX];
    if (a->log == NULL)
        return add_pair(args, "--appendonly", "no", err);
    snprintf(name, sizeof name, "%s", a->log->name);
    size_t len = strlen(name);
    if (len >= sizeof tail)
        name[len + 1 - sizeof tail] = '\0';
    return add_pair(args, "--appendonly", "yes", err) &&
           add_pair(args, "--appendfilename", name, err) &&
           add_pair(args, "--appenddirname", LOG_FOLDER, err) &&
           add_pair(args, "--aof-load-truncated", "no", err);
}

static bool add_settings(const struct attempt *a, struct backup_keeper_args *args,
                         struct rd_err *err)
{
    char databases[RD_NUM_I64_MAX + 1], socket[BACKUP_KEEPER_PATH + 10];
    uint64_t highest = DATABASES_MIN - 1;
    for (size_t i = 0; i < a->expected.n_dbs; i++)
        if (a->expected.dbs[i].db > highest)
            highest = a->expected.dbs[i].db;
    databases[rd_num_put_u64(databases, highest + 1)] = '\0';
    snprintf(socket, sizeof socket, "%s/socket", a->keeper.folder);
    return add_pair(args, "--port", "0", err) && add_pair(args, "--unixsocket", socket, err) &&
           add_pair(args, "--unixsocketperm", "700", err) &&
           add_pair(args, "--dir", a->keeper.folder, err) &&
           add_pair(args, "--dbfilename", "dump.rdb", err) &&
           add_pair(args, "--databases", databases, err) &&
           add_pair(args, "--daemonize", "no", err) && add_pair(args, "--save", "", err) &&
           backup_keeper_add(args, "--slaveof", err) && add_pair(args, "127.0.0.1", "0", err) &&
           add_log(a, args, err);
}

/* ---- why it ended ---- */

/* The last line of the log that is a warning and says something, or the last one of all. */
static struct rd_slice pick_line(struct rd_slice text)
{
    struct rd_slice best = {0}, last = {0};
    while (text.len > 0) {
        const uint8_t *end = memchr(text.ptr, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.ptr) : text.len;
        struct rd_slice line = rd_slice(text.ptr, len);
        const uint8_t *mark = memmem(line.ptr, line.len, " # ", 3);
        if (mark != NULL && memmem(line.ptr, line.len, "erminating", 10) == NULL &&
            memmem(line.ptr, line.len, "Exiting", 7) == NULL)
            best = rd_slice(mark + 3, (size_t)(line.ptr + line.len - mark) - 3);
        if (len > 0)
            last = line;
        text = rd_slice(text.ptr + len, text.len - len);
        if (text.len > 0)
            text = rd_slice(text.ptr + 1, text.len - 1);
    }
    return best.len > 0 ? best : last;
}

static void read_log(const struct attempt *a, struct rd_buf *ret)
{
    char path[PATH_MAX], bytes[LOG_MAX];
    snprintf(path, sizeof path, "%s/log", a->keeper.folder);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fseek(file, -(long)sizeof bytes, SEEK_END) != 0)
        rewind(file);
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    rd_buf_add(ret, bytes, len);
}

/* Servers report their version at the start of the log. */
static void version_of_log(struct backup_load *load, struct rd_slice text)
{
    static const char mark[] = " version=";
    const uint8_t *at = text.len > 0 ? memmem(text.ptr, text.len, mark, sizeof mark - 1) : NULL;
    if (at == NULL || load->server[0] != '\0')
        return;
    const uint8_t *name = at;
    while (name > text.ptr && name[-1] != ' ' && name[-1] != '\n')
        name--;
    const uint8_t *version = at + sizeof mark - 1;
    size_t left = (size_t)(text.ptr + text.len - version), len = 0;
    while (len < left && version[len] != ',' && version[len] != '\n' && version[len] != ' ')
        len++;
    snprintf(load->server, sizeof load->server, "%.30s %.40s",
             rd_show_plain(rd_slice(name, (size_t)(at - name))).s,
             rd_show_plain(rd_slice(version, len)).s);
}

/* Since Redis 8.0 a setting that it does not know may be one of a module. */
static bool refuses_settings(struct rd_slice text)
{
    static const char *const marks[] = {"FATAL CONFIG", "# Unresolved Configuration"};
    bool found = false;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && text.len > 0; i++)
        found = found || memmem(text.ptr, text.len, marks[i], strlen(marks[i])) != NULL;
    return found;
}

static bool explain_end(struct attempt *a, int status, struct rd_err *err)
{
    struct backup_load *load = a->load;
    struct rd_buf text = {0};
    char line[RD_ERR_TEXT_MAX];
    bool crashed = WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
    read_log(a, &text);
    version_of_log(load, rd_buf_slice(&text));
    rd_err_printable(line, sizeof line, pick_line(rd_buf_slice(&text)));
    bool settings = refuses_settings(rd_buf_slice(&text));
    rd_buf_done(&text);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                          "the program %s cannot be started: name a server with --server",
                          load->program != NULL ? rd_show_plain(rd_slice_str(load->program)).s
                                                : "redoubt-server");
    if (WIFSIGNALED(status) && !crashed)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the server was killed");
    if (settings)
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the server refuses its settings: %s",
                          line);
    if (load->server[0] == '\0')
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET,
                          "the program exited and is not a server: %s", line);
    load->refused = true;
    return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "%s does not load it%s: %s",
                      load->server, crashed ? " and crashes" : "", line);
}

/* ---- the running server ---- */

/* INFO, unless the server does not listen yet or is busy. */
static bool ask_info(const struct attempt *a, struct client_peer_reply *reply)
{
    const struct client_opts opts = {.timeout_ms = ASK_TIMEOUT_MS};
    struct client_target target = {.opts = &opts};
    struct client_peer *peer = NULL;
    char path[BACKUP_KEEPER_PATH + 10];
    snprintf(path, sizeof path, "%s/socket", a->keeper.folder);
    bool ok = client_target_set_socket(&target, rd_slice_str(path), NULL) &&
              client_peer_open(&peer, &target, NULL) && client_peer_ask(peer, "INFO", reply, NULL);
    client_peer_close(peer);
    client_target_done(&target);
    return ok;
}

static bool wait_loaded(struct attempt *a, struct client_peer_reply *reply, struct rd_err *err)
{
    uint64_t answered = backup_boot_ms(), loading;
    int status;
    for (;;) {
        if (backup_keeper_ended(&a->keeper, &status))
            return explain_end(a, status, err);
        bool ok = ask_info(a, reply);
        if (ok && client_info_u64(reply->items[0].text, "loading", &loading) && loading == 0)
            return true;
        if (ok)
            answered = backup_boot_ms();
        if (backup_boot_ms() - answered > SILENCE_MS)
            return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "the server does not answer");
        backup_wait_ms(WAIT_MS);
    }
}

static void set_version(struct backup_load *load, struct rd_slice info)
{
    static const char *const names[] = {"redoubt", "valkey", "redis"};
    struct rd_slice version;
    char field[40];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(field, sizeof field, "%s_version", names[i]);
        if (!client_info_find(info, field, &version))
            continue;
        snprintf(load->server, sizeof load->server, "%s %.40s", names[i], rd_show_plain(version).s);
        return;
    }
}

/* Compares the number of keys of each database. */
static bool compare_keys(struct attempt *a, struct rd_slice info, struct rd_err *err)
{
    struct backup_load *load = a->load;
    uint64_t total = 0;
    for (size_t i = 0; i < a->expected.n_dbs; i++) {
        const struct archive_db *db = &a->expected.dbs[i];
        char field[40];
        struct rd_slice line, text;
        uint64_t keys = 0;
        snprintf(field, sizeof field, "db%llu", (unsigned long long)db->db);
        if (client_info_find(info, field, &line) && client_info_part(line, "keys", &text))
            rd_num_get_u64(text, &keys);
        total += keys;
        if (keys == db->keys)
            continue;
        load->refused = true;
        return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET,
                          "%s has %s key%s in database %llu, the backup has %s", load->server,
                          rd_show_count(keys).s, rd_show_plural(keys), (unsigned long long)db->db,
                          rd_show_count(db->keys).s);
    }
    load->keys += total;
    return true;
}

static bool run_server(struct attempt *a, struct rd_err *err)
{
    struct client_peer_reply reply = {0};
    struct backup_keeper_args args = {.n = 0};
    char program[PATH_MAX];
    if (a->load->program == NULL)
        find_program(program);
    else
        snprintf(program, sizeof program, "%s", a->load->program);
    a->load->server[0] = '\0';
    bool ok = backup_keeper_add(&args, program, err) && add_settings(a, &args, err) &&
              backup_keeper_start(&a->keeper, &args, err) && wait_loaded(a, &reply, err);
    if (ok) {
        set_version(a->load, reply.items[0].text);
        ok = compare_keys(a, reply.items[0].text, err);
    }
    client_peer_reply_done(&reply);
    if (!ok && !a->load->refused)
        rd_err_doing(err, "the output of %s", rd_show_plain(rd_slice_str(program)).s);
    return ok;
}

/* file: a snapshot, or the manifest of a log. */
static bool attempt(struct backup_load *load, const struct archive_file *file, struct rd_err *err)
{
    struct attempt a = {.load = load};
    bool is_log = file->role == ARCHIVE_ROLE_AOF_MANIFEST;
    if (!backup_keeper_begin(&a.keeper, err))
        return false;
    a.log = is_log ? file : NULL;
    bool ok = is_log ? lay_out_log(&a, err)
                     : write_file(&a, file, "dump.rdb", err) && count_keys(&a, "dump.rdb", err);
    ok = ok && run_server(&a, err);
    backup_keeper_end(&a.keeper);
    archive_manifest_done(&a.expected);
    return ok;
}

bool backup_load(struct backup_load *load, struct rd_err *err)
{
    const struct archive_manifest *m = &load->set->m;
    for (size_t i = 0; i < m->n_files; i++) {
        enum archive_role role = m->files[i].role;
        if ((role == ARCHIVE_ROLE_RDB || role == ARCHIVE_ROLE_AOF_MANIFEST) &&
            !attempt(load, &m->files[i], err))
            return false;
    }
    return true;
}
