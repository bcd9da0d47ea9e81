/* keys.c - the keys that seal sets. */
#include "backup/keys.h"

#include "archive/base64.h"
#include "backup/system.h"
#include "base/buf.h"
#include "base/digest.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_TEXT_MAX = 64 * 1024, PASSPHRASE_MAX = 4096, BASE64_KEY = 44 };

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct rd_slice trim(struct rd_slice s)
{
    while (s.len > 0 && is_space(s.ptr[0]))
        s = rd_slice(s.ptr + 1, s.len - 1);
    while (s.len > 0 && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static bool from_base64(struct rd_slice text, uint8_t ret[RD_SEAL_KEY])
{
    size_t n;
    return text.len == BASE64_KEY && archive_base64_get(text, ret, RD_SEAL_KEY, &n) &&
           n == RD_SEAL_KEY;
}

static bool add_key(struct backup_keys *keys, const uint8_t bytes[RD_SEAL_KEY], struct rd_err *err)
{
    if (keys->n_keys == BACKUP_RING)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "more than %d keys", BACKUP_RING);
    return rd_seal_key_set(&keys->keys[keys->n_keys], bytes, err) && ++keys->n_keys > 0;
}

static bool add_line(struct backup_keys *keys, struct rd_slice line, struct rd_err *err)
{
    uint8_t bytes[RD_SEAL_KEY];
    line = trim(line);
    if (line.len == 0 || line.ptr[0] == '#')
        return true;
    bool ok = rd_digest_get_hex(line, bytes, sizeof bytes) || from_base64(line, bytes);
    if (!ok)
        rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                   "a key must be 32 bytes, 64 hexadecimal digits or 44 characters of base64");
    ok = ok && add_key(keys, bytes, err);
    explicit_bzero(bytes, sizeof bytes);
    return ok;
}

bool backup_keys_parse(struct backup_keys *keys, struct rd_slice text, struct rd_err *err)
{
    size_t before = keys->n_keys;
    if (text.len == RD_SEAL_KEY)
        return add_key(keys, text.ptr, err);
    while (text.len > 0) {
        const uint8_t *lf = memchr(text.ptr, '\n', text.len);
        size_t len = lf != NULL ? (size_t)(lf - text.ptr) : text.len;
        if (!add_line(keys, rd_slice(text.ptr, len), err))
            return false;
        size_t used = len + (lf != NULL);
        text = rd_slice(text.ptr + used, text.len - used);
    }
    return keys->n_keys > before ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "it contains no key");
}

/* From a file or a command, whichever is given; *ret_given says whether one is. */
static bool secret(const struct backup_target *target, enum backup_key file,
                   enum backup_key command, size_t max, struct rd_buf *ret, bool *ret_given,
                   struct rd_err *err)
{
    const char *path = backup_get(target, file), *line = backup_get(target, command);
    *ret_given = path != NULL || line != NULL;
    if (path != NULL)
        return backup_read_file(path, max, ret, err);
    return line == NULL || backup_run(backup_key_name(command), line, NULL, max, ret, err);
}

static void name_origin(const struct backup_target *target, enum backup_key file,
                        enum backup_key command, struct rd_err *err)
{
    const char *path = backup_get(target, file), *line = backup_get(target, command);
    if (path != NULL || line != NULL)
        rd_err_origin(err, path != NULL ? path : backup_key_name(command));
}

static bool open_keys(struct backup_keys *keys, const struct backup_target *target,
                      struct rd_err *err)
{
    struct rd_buf text = {0};
    bool given;
    bool ok = secret(target, BACKUP_KEY_KEY_FILE, BACKUP_KEY_KEY_COMMAND, KEY_TEXT_MAX, &text,
                     &given, err) &&
              (!given || backup_keys_parse(keys, rd_buf_slice(&text), err));
    if (!ok)
        name_origin(target, BACKUP_KEY_KEY_FILE, BACKUP_KEY_KEY_COMMAND, err);
    if (text.len > 0)
        explicit_bzero(text.ptr, text.len);
    rd_buf_done(&text);
    return ok;
}

static bool open_passphrase(struct backup_keys *keys, const struct backup_target *target,
                            struct rd_err *err)
{
    bool given;
    bool ok = secret(target, BACKUP_KEY_PASSPHRASE_FILE, BACKUP_KEY_PASSPHRASE_COMMAND,
                     PASSPHRASE_MAX, &keys->passphrase, &given, err);
    struct rd_buf *p = &keys->passphrase;
    while (ok && p->len > 0 && (p->ptr[p->len - 1] == '\n' || p->ptr[p->len - 1] == '\r'))
        p->len--;
    if (ok && given && p->len == 0)
        ok = rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the passphrase is empty");
    if (!ok)
        name_origin(target, BACKUP_KEY_PASSPHRASE_FILE, BACKUP_KEY_PASSPHRASE_COMMAND, err);
    return ok;
}

/* Whether the target names a key or a passphrase. */
static bool names_keys(const struct backup_target *target)
{
    return backup_get(target, BACKUP_KEY_KEY_FILE) != NULL ||
           backup_get(target, BACKUP_KEY_KEY_COMMAND) != NULL ||
           backup_get(target, BACKUP_KEY_PASSPHRASE_FILE) != NULL ||
           backup_get(target, BACKUP_KEY_PASSPHRASE_COMMAND) != NULL;
}

static void make_ring(struct backup_keys *keys, const struct backup_target *target)
{
    keys->ring = (struct rd_seal_ring){.keys = keys->keys,
                                       .n_keys = keys->n_keys,
                                       .passphrase = rd_buf_slice(&keys->passphrase),
                                       .elsewhere = names_keys(target),
                                       .allow_unsealed = target->allow_unsealed};
}

bool backup_keys_open(struct backup_keys *ret, const struct backup_target *target,
                      struct rd_err *err)
{
    *ret = (struct backup_keys){0};
    if (!open_keys(ret, target, err) || !open_passphrase(ret, target, err)) {
        backup_keys_done(ret);
        return false;
    }
    make_ring(ret, target);
    return true;
}

void backup_keys_look(struct backup_keys *ret, const struct backup_target *target)
{
    const char *path = backup_get(target, BACKUP_KEY_KEY_FILE);
    *ret = (struct backup_keys){0};
    if (path != NULL && access(path, R_OK) == 0 && !open_keys(ret, target, NULL))
        backup_keys_done(ret);
    make_ring(ret, target);
}

bool backup_keys_given(const struct backup_keys *keys)
{
    return keys->n_keys > 0 || keys->passphrase.len > 0;
}

void backup_keys_done(struct backup_keys *keys)
{
    for (size_t i = 0; i < BACKUP_RING; i++)
        rd_seal_key_done(&keys->keys[i]);
    if (keys->passphrase.len > 0)
        explicit_bzero(keys->passphrase.ptr, keys->passphrase.len);
    rd_buf_done(&keys->passphrase);
    *keys = (struct backup_keys){0};
}

bool backup_keys_seal(struct backup_keys *keys, const struct rd_seal_key **ret, struct rd_err *err)
{
    uint8_t salt[RD_SEAL_SALT];
    *ret = NULL;
    if (keys->n_keys == 0 && keys->passphrase.len > 0) {
        if (!backup_random(salt, sizeof salt, err) ||
            !rd_seal_key_stretch(&keys->keys[0], rd_buf_slice(&keys->passphrase), salt, err))
            return false;
        keys->n_keys = keys->ring.n_keys = 1;
    }
    if (keys->n_keys > 0)
        *ret = &keys->keys[0];
    return true;
}
