/* config.c - targets and their keys, from the configuration and the command line. */
#include "backup/config.h"

#include "archive/lock.h"
#include "archive/prefetch.h"
#include "archive/retain.h"
#include "backup/system.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/show.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>

enum { CONFIG_MAX = 1 << 20, TARGETS_MAX = 10000 };

static const struct backup_key_row keys[] = {
#define X(id, name, arg, mask, help) {name, arg, help, mask},
    BACKUP_KEYS(X)
#undef X
};

/* ---- values ---- */

static bool keep_text(char **ret, const char *text, struct rd_err *err)
{
    char *copy = rd_alloc(strlen(text) + 1);
    if (copy == NULL)
        return rd_err_nomem(err, strlen(text));
    *ret = strcpy(copy, text);
    return true;
}

/* A URL may hold a password. */
static void forget(char **text)
{
    if (*text != NULL)
        explicit_bzero(*text, strlen(*text));
    rd_free(*text);
    *text = NULL;
}

static void conf_done(struct backup_conf *conf)
{
    for (size_t i = 0; i < BACKUP_KEY_COUNT; i++)
        forget(&conf->values[i]);
    for (size_t i = 0; i < conf->n_more; i++)
        forget(&conf->more[i]);
    conf->n_more = 0;
}

static void target_done(struct backup_target *target)
{
    conf_done(&target->conf);
    for (size_t i = 0; i < BACKUP_STORES; i++) {
        if (target->places[i] != NULL)
            conf_done(target->places[i]);
        rd_free(target->places[i]);
    }
}

/* The key that says the same in another way, or `key`. */
static enum backup_key other_way(enum backup_key key)
{
    static const enum backup_key pairs[][2] = {
        {BACKUP_KEY_KEY_FILE, BACKUP_KEY_KEY_COMMAND},
        {BACKUP_KEY_PASSPHRASE_FILE, BACKUP_KEY_PASSPHRASE_COMMAND},
        {BACKUP_KEY_S3_KEY_FILE, BACKUP_KEY_S3_KEY_COMMAND},
        {BACKUP_KEY_AZURE_KEY_FILE, BACKUP_KEY_AZURE_SAS_FILE},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] == key || pairs[i][1] == key)
            return pairs[i][pairs[i][0] == key];
    return key;
}

/* Repositories may be several; of everything else there is one. */
static bool conf_set(struct backup_conf *conf, enum backup_key key, const char *value,
                     struct rd_err *err)
{
    if (value[0] == '\0')
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s has no value", keys[key].name);
    enum backup_key other = other_way(key);
    if (other != key && conf->values[other] != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "only one of %s and %s can be given",
                          keys[other].name, keys[key].name);
    if (conf->values[key] == NULL)
        return keep_text(&conf->values[key], value, err);
    if (key != BACKUP_KEY_REPOSITORY)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s is given twice", keys[key].name);
    if (conf->n_more == BACKUP_STORES - 1)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "more than %d repositories",
                          BACKUP_STORES);
    return keep_text(&conf->more[conf->n_more], value, err) && ++conf->n_more > 0;
}

bool backup_config_set(struct backup_config *config, enum backup_key key, const char *value,
                       struct rd_err *err)
{
    return conf_set(&config->flags, key, value, err);
}

/* Whether keys of S3 are given, so that those of the instance are not used. */
static bool names_s3_keys(const struct backup_conf *conf)
{
    return conf->values[BACKUP_KEY_S3_KEY_FILE] != NULL ||
           conf->values[BACKUP_KEY_S3_KEY_COMMAND] != NULL;
}

/* What `conf` does not say is as in `other`. */
static bool conf_inherit(struct backup_conf *conf, const struct backup_conf *other,
                         struct rd_err *err)
{
    bool repositories = conf->values[BACKUP_KEY_REPOSITORY] == NULL, named = names_s3_keys(conf);
    for (size_t i = 0; i < BACKUP_KEY_COUNT; i++)
        if (conf->values[i] == NULL && conf->values[other_way((enum backup_key)i)] == NULL &&
            other->values[i] != NULL && !(named && i == BACKUP_KEY_S3_INSTANCE_KEYS) &&
            !keep_text(&conf->values[i], other->values[i], err))
            return false;
    for (; repositories && conf->n_more < other->n_more; conf->n_more++)
        if (!keep_text(&conf->more[conf->n_more], other->more[conf->n_more], err))
            return false;
    return true;
}

/* What opens a store. It is not sent to another one. */
static bool is_secret(enum backup_key key)
{
    static const enum backup_key secrets[] = {
        BACKUP_KEY_S3_KEY_FILE,     BACKUP_KEY_S3_KEY_COMMAND, BACKUP_KEY_S3_INSTANCE_KEYS,
        BACKUP_KEY_AZURE_KEY_FILE,  BACKUP_KEY_AZURE_SAS_FILE, BACKUP_KEY_WEBDAV_USER,
        BACKUP_KEY_WEBDAV_PASS_FILE};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (secrets[i] == key)
            return true;
    return false;
}

void backup_target_at(const struct backup_target *target, const char *where,
                      struct backup_target *ret)
{
    *ret = *target;
    for (size_t i = 0; i < BACKUP_STORES; i++) {
        const struct backup_conf *place = target->places[i];
        if (place == NULL || backup_repository(target, i) != where)
            continue;
        for (size_t k = 0; k < BACKUP_KEY_COUNT; k++)
            if (place->values[k] != NULL || place->values[other_way((enum backup_key)k)] != NULL ||
                is_secret((enum backup_key)k))
                ret->conf.values[k] = place->values[k];
    }
}

bool backup_may_be_shown(const char *where)
{
    const char *rest = strstr(where, "://");
    size_t len = rest != NULL ? strcspn(rest + 3, "@") : 0;
    return rest == NULL || (strchr(rest, '?') == NULL &&
                            (rest[3 + len] == '\0' || memchr(rest + 3, ':', len) == NULL));
}

const struct backup_key_row *backup_key_row(enum backup_key key)
{
    return &keys[key];
}

const char *backup_key_name(enum backup_key key)
{
    return keys[key].name;
}

const char *backup_get(const struct backup_target *target, enum backup_key key)
{
    return target->conf.values[key];
}

const char *backup_repository(const struct backup_target *target, size_t i)
{
    if (i == 0)
        return backup_get(target, BACKUP_KEY_REPOSITORY);
    return i <= target->conf.n_more ? target->conf.more[i - 1] : NULL;
}

bool backup_get_bool(const struct backup_target *target, enum backup_key key, bool *ret,
                     struct rd_err *err)
{
    const char *value = backup_get(target, key);
    *ret = value != NULL && strcmp(value, "yes") == 0;
    return value == NULL || *ret || strcmp(value, "no") == 0 ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s must be yes or no", keys[key].name);
}

bool backup_get_time(const struct backup_target *target, enum backup_key key, uint64_t *ret_ms,
                     struct rd_err *err)
{
    const char *text = backup_get(target, key);
    return text == NULL || archive_get_duration(rd_slice_str(text), ret_ms) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s is not a time such as 10s or 24h",
                      keys[key].name);
}

bool backup_get_interval(const struct backup_target *target, enum backup_key key, uint64_t *ret_ms,
                         struct rd_err *err)
{
    return backup_get_time(target, key, ret_ms, err) &&
           (backup_get(target, key) == NULL || *ret_ms > 0 ||
            rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s must be longer than 0",
                       keys[key].name));
}

bool backup_get_size(const struct backup_target *target, enum backup_key key, uint64_t *ret,
                     struct rd_err *err)
{
    const char *text = backup_get(target, key);
    return text == NULL || (rd_num_get_size(rd_slice_str(text), ret) && *ret > 0) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s is not a size such as 64mb",
                      keys[key].name);
}

bool backup_get_expiry(const struct backup_target *target, uint64_t *ret_ms, struct rd_err *err)
{
    enum { MIN_MS = 1000, MAX_MS = 24 * 3600 * 1000 };
    *ret_ms = ARCHIVE_LOCK_EXPIRE_MS;
    return backup_get_time(target, BACKUP_KEY_LOCK_EXPIRE, ret_ms, err) &&
           ((*ret_ms >= MIN_MS && *ret_ms <= MAX_MS) ||
            rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                       "lock-expire must be a time from 1s to 24h"));
}

bool backup_get_parallel(const struct backup_target *target, unsigned *ret, struct rd_err *err)
{
    enum { PARALLEL = 16 };
    const char *text = backup_get(target, BACKUP_KEY_PARALLEL);
    uint64_t n = PARALLEL;
    if (text != NULL &&
        (!rd_num_get_u64(rd_slice_str(text), &n) || n == 0 || n > ARCHIVE_PARALLEL_MAX))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "%s must be a number from 1 to %d",
                          keys[BACKUP_KEY_PARALLEL].name, ARCHIVE_PARALLEL_MAX);
    *ret = (unsigned)n;
    return true;
}

/* ---- the file ---- */

struct parse {
    struct backup_config *config;
    struct backup_target common; /* the keys before the first section */
    struct rd_err *err;
};

/* A target or a repository with a section. */
static struct backup_target *named(struct backup_target **all, size_t *n, const char *what,
                                   const char *name, struct rd_err *err)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp((*all)[i].name, name) == 0)
            return &(*all)[i];
    if (!archive_name_ok(name) || *n == TARGETS_MAX) {
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "the name of a %s must consist of letters, digits, - _ and .", what);
        return NULL;
    }
    size_t size = (*n + 1) * sizeof **all;
    struct backup_target *more = rd_realloc(*all, size);
    if (more == NULL) {
        rd_err_nomem(err, size);
        return NULL;
    }
    *all = more;
    struct backup_target *target = &more[(*n)++];
    *target = (struct backup_target){0};
    snprintf(target->name, sizeof target->name, "%s", name);
    return target;
}

static struct backup_target *target_named(struct backup_config *config, const char *name,
                                          struct rd_err *err)
{
    return named(&config->targets, &config->n_targets, "target", name, err);
}

/* The name in "repository NAME", or NULL. */
static const char *place_name(const char *section)
{
    static const char word[] = "repository";
    size_t len = sizeof word - 1, blanks = 0;
    if (strncmp(section, word, len) == 0)
        blanks = strspn(section + len, " \t");
    return blanks > 0 ? section + len + blanks : NULL;
}

static struct backup_target *section(struct parse *parse, const char *name)
{
    const char *place = place_name(name);
    struct backup_config *config = parse->config;
    if (name[0] == '\0')
        return &parse->common;
    if (place != NULL)
        return named(&config->places, &config->n_places, "repository", place, parse->err);
    return target_named(config, name, parse->err);
}

/* Called by inih; 0 is a failure. */
static int on_value(void *user, const char *name, const char *key, const char *value)
{
    struct parse *parse = user;
    struct backup_target *target = section(parse, name);
    bool is_place = target != NULL && place_name(name) != NULL;
    if (target == NULL)
        return 0;
    for (size_t i = 0; i < BACKUP_KEY_COUNT; i++) {
        if (strcmp(key, keys[i].name) != 0)
            continue;
        if (is_place && !(keys[i].mask & BACKUP_FOR_REPOSITORY))
            return rd_err_set(parse->err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "%s is a setting of targets, not of a repository", keys[i].name);
        return conf_set(&target->conf, (enum backup_key)i, value, parse->err);
    }
    char quoted[80];
    rd_err_quote(quoted, sizeof quoted, rd_slice_str(key));
    return rd_err_set(parse->err, RD_ERR_USAGE, RD_NO_OFFSET, "unknown key %s", quoted);
}

static bool parse_text(struct parse *parse, const char *path, const char *text)
{
    int line = ini_parse_string(text, on_value, parse);
    bool ok = line == 0;
    if (!ok && parse->err != NULL && parse->err->code == RD_ERR_OK)
        rd_err_set(parse->err, RD_ERR_USAGE, RD_NO_OFFSET, "not a section and not a key = value");
    for (size_t i = 0; ok && i < parse->config->n_targets; i++)
        ok = conf_inherit(&parse->config->targets[i].conf, &parse->common.conf, parse->err);
    if (!ok) {
        rd_err_doing(parse->err, "line %d", line);
        rd_err_origin(parse->err, path);
    }
    conf_done(&parse->common.conf);
    return ok;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* Whether a line gives a command in which inih finds a comment: it would run only a part of it. */
static bool cuts_command(struct rd_slice line)
{
    static const char *const names[] = {"hook-pre",    "hook-post",      "hook-failed",
                                        "key-command", "s3-key-command", "passphrase-command"};
    const uint8_t *at = line.ptr, *end = line.ptr + line.len, *key, *key_end;
    while (at < end && is_blank(*at))
        at++;
    for (key = at; at < end && *at != '=' && *at != ':' && !is_blank(*at);)
        at++;
    key_end = at;
    bool is_command = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_command = is_command || rd_slice_is(rd_slice(key, (size_t)(key_end - key)), names[i]);
    for (; is_command && at + 1 < end; at++)
        if (is_blank(at[0]) && at[1] == ';')
            return true;
    return false;
}

/* inih takes an indented line after a key for one more value of that key: a repository. */
static bool continues(struct rd_slice line, bool *after_key)
{
    const uint8_t *at = line.ptr, *end = line.ptr + line.len;
    while (at < end && (is_blank(*at) || *at == '\r' || *at == '\n'))
        at++;
    if (at == end || *at == ';' || *at == '#')
        return false;
    bool indented = at > line.ptr && *after_key;
    *after_key = indented || *at != '[';
    return indented;
}

/* inih cuts the names of sections, so that two of them could become one. */
static bool cuts_section(struct rd_slice line)
{
    enum { SECTION_MAX = 49 };
    const uint8_t *end = line.len > 0 ? memchr(line.ptr, ']', line.len) : NULL;
    return end != NULL && line.ptr[0] == '[' && end - line.ptr - 1 > SECTION_MAX;
}

static bool check_line(struct rd_slice line, unsigned number, bool *after_key, struct rd_err *err)
{
    if (cuts_section(line))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "line %u: the name of a section is longer than 49 bytes", number);
    if (continues(line, after_key))
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "line %u begins with a blank: it would be a part of the line before it",
                          number);
    return !cuts_command(line) ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "line %u: a ; after a blank begins a comment, and would cut the command: "
                      "write it without the blank",
                      number);
}

/* inih ends at a zero byte and cuts lines that are longer than its buffer. */
static bool check_lines(struct rd_slice text, struct rd_err *err)
{
    enum { LINE_MAX_BYTES = INI_MAX_LINE - 2 };
    unsigned line = 1;
    bool after_key = false;
    for (size_t i = 0, begin = 0; i < text.len; i++) {
        if (text.ptr[i] == '\0')
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "line %u has a NUL byte", line);
        bool ends = text.ptr[i] == '\n';
        if (!ends && i - begin >= LINE_MAX_BYTES)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "line %u is longer than %d bytes",
                              line, LINE_MAX_BYTES);
        if (!ends && i + 1 < text.len)
            continue;
        if (!check_line(rd_slice(text.ptr + begin, i + 1 - begin), line, &after_key, err))
            return false;
        begin = i + 1;
        line++;
    }
    return true;
}

static bool read_config(struct backup_config *config, const char *path, struct rd_err *err)
{
    struct parse parse = {.config = config, .err = err};
    struct rd_buf text = {0};
    bool ok = backup_read_file(path, CONFIG_MAX, &text, err);
    if (ok && !check_lines(rd_buf_slice(&text), err)) {
        rd_err_origin(err, path);
        ok = false;
    }
    ok = ok && (rd_buf_add_byte(&text, '\0') || rd_err_nomem(err, text.len)) &&
         parse_text(&parse, path, (const char *)text.ptr);
    if (text.len > 0)
        explicit_bzero(text.ptr, text.len);
    rd_buf_done(&text);
    return ok;
}

/* ---- which targets ---- */

static bool wanted(const char *name, char **names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return n_names == 0;
}

static bool pick(struct backup_config *config, char **names, size_t n_names, struct rd_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < n_names; i++) {
        bool found = false;
        for (size_t j = 0; !found && j < config->n_targets; j++)
            found = strcmp(config->targets[j].name, names[i]) == 0;
        if (!found)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the configuration has no target %s",
                              rd_show_quote(rd_slice_str(names[i])).s);
    }
    for (size_t i = 0; i < config->n_targets; i++) {
        struct backup_target target = config->targets[i];
        if (wanted(target.name, names, n_names))
            config->targets[n++] = target;
        else
            conf_done(&target.conf);
    }
    config->n_targets = n;
    return n > 0 || rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the configuration has no target");
}

/* Whether the options alone make the targets. */
static bool without_config(const struct backup_config *config, struct rd_err *err)
{
    return config->path == NULL && config->flags.values[BACKUP_KEY_REPOSITORY] != NULL &&
           err->code == RD_ERR_IO && err->sys == ENOENT;
}

static bool read_targets(struct backup_config *config, const struct rd_watch *watch, char **names,
                         size_t n_names, struct rd_err *err)
{
    struct rd_err failed = {0};
    if (read_config(config, config->path != NULL ? config->path : BACKUP_CONFIG, &failed))
        return pick(config, names, n_names, err);
    if (!without_config(config, &failed)) {
        rd_watch_hint(watch, "--config FILE names a configuration; with --repository, and --source "
                             "for a backup, none is needed");
        if (config->path == NULL && failed.code == RD_ERR_IO && failed.sys == ENOENT)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "no configuration: %s does not exist", BACKUP_CONFIG);
        rd_err_adopt(err, &failed);
        return false;
    }
    if (n_names == 0)
        return target_named(config, "default", err) != NULL;
    for (size_t i = 0; i < n_names; i++)
        if (target_named(config, names[i], err) == NULL)
            return false;
    return true;
}

/* Without slashes at the end. */
static struct rd_slice trimmed(const char *repository)
{
    struct rd_slice s = rd_slice_str(repository);
    while (s.len > 1 && (s.ptr[s.len - 1] == '/' ||
                         (s.len > 2 && s.ptr[s.len - 1] == '.' && s.ptr[s.len - 2] == '/')))
        s.len--;
    return s;
}

/* ---- repositories with sections ---- */

static const struct backup_target *find_place(const struct backup_config *config, const char *name)
{
    for (size_t i = 0; i < config->n_places; i++)
        if (strcmp(config->places[i].name, name) == 0)
            return &config->places[i];
    return NULL;
}

/* *at is the name of the place: it becomes what its section says. Options take precedence. */
static bool resolve(const struct backup_config *config, const struct backup_target *place,
                    char **at, struct backup_conf **ret, struct rd_err *err)
{
    const char *where = place->conf.values[BACKUP_KEY_REPOSITORY];
    struct backup_conf *conf = rd_calloc(1, sizeof *conf);
    if (conf == NULL)
        return rd_err_nomem(err, sizeof *conf);
    *ret = conf;
    if (where == NULL || place->conf.n_more > 0)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "the section [repository %s] must have one repository = PATH or URL",
                          place->name);
    forget(at);
    bool ok = keep_text(at, where, err);
    for (size_t i = 0; ok && i < BACKUP_KEY_COUNT; i++) {
        const char *option = config->flags.values[i];
        bool given = option != NULL ||
                     config->flags.values[other_way((enum backup_key)i)] != NULL ||
                     (i == BACKUP_KEY_S3_INSTANCE_KEYS && names_s3_keys(&config->flags));
        const char *value = given ? option : place->conf.values[i];
        if (value != NULL && (keys[i].mask & BACKUP_FOR_REPOSITORY) && i != BACKUP_KEY_REPOSITORY)
            ok = keep_text(&conf->values[i], value, err);
    }
    return ok;
}

static bool resolve_all(const struct backup_config *config, struct backup_target *target,
                        struct rd_err *err)
{
    char **at = &target->conf.values[BACKUP_KEY_REPOSITORY];
    for (size_t i = 0; i <= target->conf.n_more; i++) {
        const struct backup_target *place = *at != NULL ? find_place(config, *at) : NULL;
        if (place != NULL && !resolve(config, place, at, &target->places[i], err))
            return false;
        if (place == NULL && *at != NULL && config->n_places > 0 && strchr(*at, '/') == NULL)
            return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                              "there is no section [repository %s]; a folder of this name is ./%s",
                              rd_show_plain(rd_slice_str(*at)).s,
                              rd_show_plain(rd_slice_str(*at)).s);
        at = &target->conf.more[i];
    }
    return true;
}

static bool same_value(const struct backup_target *a, const struct backup_target *b,
                       enum backup_key key, const char *usual)
{
    const char *x = backup_get(a, key), *y = backup_get(b, key);
    return strcmp(x != NULL ? x : usual, y != NULL ? y : usual) == 0;
}

/* One URL may name buckets of two services. The region is that of Amazon's. */
static bool same_service(const struct backup_target *target, const char *a, const char *b)
{
    struct backup_target first, second;
    backup_target_at(target, a, &first);
    backup_target_at(target, b, &second);
    if (strncmp(a, "azure://", 8) == 0)
        return same_value(&first, &second, BACKUP_KEY_AZURE_ENDPOINT, "");
    if (strncmp(a, "s3://", 5) != 0 && strncmp(a, "gs://", 5) != 0)
        return true;
    return same_value(&first, &second, BACKUP_KEY_S3_ENDPOINT, "") &&
           (backup_get(&first, BACKUP_KEY_S3_ENDPOINT) != NULL || a[0] == 'g' ||
            same_value(&first, &second, BACKUP_KEY_S3_REGION, "us-east-1"));
}

/* A run would wait for its own lock. */
static bool differ(const struct backup_target *target, struct rd_err *err)
{
    const char *a, *b;
    for (size_t i = 0; (a = backup_repository(target, i)) != NULL; i++)
        for (size_t j = i + 1; (b = backup_repository(target, j)) != NULL; j++)
            if (rd_slice_eq(trimmed(a), trimmed(b)) && same_service(target, a, b)) {
                rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the repository %s is given twice",
                           backup_may_be_shown(a) ? rd_show_plain(trimmed(a)).s : "URL");
                rd_err_origin(err, target->name);
                return false;
            }
    return true;
}

/* The options take the place of what the file says. */
static bool override(struct backup_config *config, struct backup_target *target, struct rd_err *err)
{
    struct backup_conf file = target->conf;
    target->allow_unsealed = config->allow_unsealed;
    target->conf = (struct backup_conf){0};
    bool ok =
        conf_inherit(&target->conf, &config->flags, err) && conf_inherit(&target->conf, &file, err);
    conf_done(&file);
    if (ok && backup_get(target, BACKUP_KEY_REPOSITORY) == NULL) {
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "no repository is given");
        rd_err_origin(err, target->name);
    }
    return ok && resolve_all(config, target, err) && differ(target, err);
}

bool backup_config_load(struct backup_config *config, const struct rd_watch *watch, char **names,
                        size_t n_names, struct rd_err *err)
{
    if (!read_targets(config, watch, names, n_names, err))
        return false;
    for (size_t i = 0; i < config->n_targets; i++)
        if (!override(config, &config->targets[i], err))
            return false;
    return true;
}

void backup_config_done(struct backup_config *config)
{
    conf_done(&config->flags);
    for (size_t i = 0; i < config->n_targets; i++)
        target_done(&config->targets[i]);
    for (size_t i = 0; i < config->n_places; i++)
        target_done(&config->places[i]);
    rd_free(config->targets);
    rd_free(config->places);
    config->targets = config->places = NULL;
    config->n_targets = config->n_places = 0;
}
