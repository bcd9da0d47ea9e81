/* target_url.c - URLs of servers.
 *
 *     SCHEME :// [ [USER] : PASSWORD @ | PASSWORD @ ] [HOST | "[" ADDRESS "]"] [ : PORT ] [ / DB ]
 *     unix   :// [ [USER] : PASSWORD @ | PASSWORD @ ] / PATH
 *
 * Errors never repeat parts of the URL, which may be a misplaced secret.
 */
#include "base/mem.h"
#include "base/num.h"
#include "client/target.h"

static const struct scheme {
    const char *text;
    bool tls;
    bool local;
} schemes[] = {
    {"redis://", false, false},  {"rediss://", true, false}, {"valkey://", false, false},
    {"valkeys://", true, false}, {"unix://", false, true},
};

static const struct scheme *find_scheme(const char *text)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(text, schemes[i].text, strlen(schemes[i].text)) == 0)
            return &schemes[i];
    return NULL;
}

bool client_target_is_url(const char *text)
{
    return find_scheme(text) != NULL;
}

static bool refuse(struct rd_err *err, const char *what)
{
    return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "the URL %s", what);
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %HH into *ret, a secret that must be cleared. A NUL byte is not allowed in any part. */
static bool decode(struct rd_slice text, char **ret, struct rd_err *err)
{
    char *out = client_secret_copy(text, err);
    size_t len = 0;
    if (out == NULL)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int byte = text.ptr[i];
        if (byte == '%') {
            int high = i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_digit(text.ptr[i + 2]) : -1;
            byte = high < 0 || low < 0 ? 0 : high << 4 | low;
            i += 2;
        }
        if (byte == 0) {
            client_secret_free(out);
            return refuse(err, "has a % without two hexadecimal digits after it");
        }
        out[len++] = (char)byte;
    }
    explicit_bzero(out + len, text.len - len);
    out[len] = '\0';
    *ret = out;
    return true;
}

static struct rd_slice cut_front(struct rd_slice s, size_t n)
{
    return rd_slice(s.ptr + n, s.len - n);
}

/* ---- who ---- */

static bool parse_login(struct client_target *target, struct rd_slice login, struct rd_err *err)
{
    const uint8_t *colon = memchr(login.ptr, ':', login.len);
    size_t user_len = colon != NULL ? (size_t)(colon - login.ptr) : 0;
    if (user_len > 0 && !decode(rd_slice(login.ptr, user_len), &target->user, err))
        return false;
    return decode(cut_front(login, colon != NULL ? user_len + 1 : 0), &target->password, err);
}

/* Cuts off the part before the last @ of *rest. An @ after a slash belongs to a password that is
 * not encoded, or to the path of a socket. */
static bool take_login(struct client_target *target, const struct scheme *scheme,
                       struct rd_slice *rest, struct rd_err *err)
{
    const uint8_t *slash = memchr(rest->ptr, '/', rest->len);
    size_t before = slash != NULL ? (size_t)(slash - rest->ptr) : rest->len;
    const uint8_t *at = memrchr(rest->ptr, '@', before);
    if (slash != NULL && !scheme->local && memchr(slash, '@', rest->len - before) != NULL)
        return refuse(err, "has a / before an @: write it as %2F in a password");
    if (at == NULL)
        return true;
    size_t len = (size_t)(at - rest->ptr);
    struct rd_slice login = rd_slice(rest->ptr, len);
    *rest = cut_front(*rest, len + 1);
    return parse_login(target, login, err);
}

/* ---- where ---- */

bool client_target_split(struct rd_slice text, uint64_t port, struct rd_slice *ret_host,
                         uint64_t *ret_port)
{
    bool bracket = text.len > 0 && text.ptr[0] == '[';
    const uint8_t *end = text.len > 0 ? memchr(text.ptr, bracket ? ']' : ':', text.len) : NULL;
    struct rd_slice host = text, rest = {0};
    if (bracket && end == NULL)
        return false;
    if (end != NULL) {
        size_t len = (size_t)(end - text.ptr);
        host = bracket ? rd_slice(text.ptr + 1, len - 1) : rd_slice(text.ptr, len);
        rest = cut_front(text, bracket ? len + 1 : len);
    }
    if (rest.len > 0 && (rest.ptr[0] != ':' || !rd_num_get_u64(cut_front(rest, 1), &port)))
        return false;
    *ret_host = host;
    *ret_port = port;
    return true;
}

static bool set_host(struct client_target *target, struct rd_slice text, uint64_t port,
                     struct rd_err *err)
{
    char *host;
    if (!decode(text, &host, err))
        return false;
    bool ok = client_target_set_place(target, rd_slice_str(host), port, err);
    client_secret_free(host);
    return ok;
}

static bool parse_place(struct client_target *target, struct rd_slice rest, struct rd_err *err)
{
    const uint8_t *slash = memchr(rest.ptr, '/', rest.len);
    size_t len = slash != NULL ? (size_t)(slash - rest.ptr) : rest.len;
    struct rd_slice host, db = slash != NULL ? cut_front(rest, len + 1) : (struct rd_slice){0};
    uint64_t port;
    if (!client_target_split(rd_slice(rest.ptr, len), CLIENT_PORT, &host, &port))
        return refuse(err, "has an invalid port: use HOST:PORT or [ADDRESS]:PORT");
    target->has_db = db.len > 0;
    if (db.len > 0 && !rd_num_get_u64(db, &target->db))
        return refuse(err, "has a database that is not a number");
    return set_host(target, host, port, err);
}

static bool parse_socket(struct client_target *target, struct rd_slice rest, struct rd_err *err)
{
    char *path;
    if (rest.len == 0 || rest.ptr[0] != '/')
        return refuse(err, "of a socket has no path: unix:///PATH");
    if (!decode(rest, &path, err))
        return false;
    bool ok = client_target_set_socket(target, rd_slice_str(path), err);
    client_secret_free(path);
    return ok;
}

bool client_target_set_url(struct client_target *target, const char *url, struct rd_err *err)
{
    const struct scheme *scheme = find_scheme(url);
    if (scheme == NULL)
        return refuse(err, "is not the URL of a server");
    struct rd_slice rest = rd_slice_str(url + strlen(scheme->text));
    if (memchr(rest.ptr, '?', rest.len) != NULL || memchr(rest.ptr, '#', rest.len) != NULL)
        return refuse(err, "has a ? or #: write them as %3F and %23 in a password");
    target->tls = scheme->tls || (target->tls && !scheme->local);
    if (!take_login(target, scheme, &rest, err))
        return false;
    return scheme->local ? parse_socket(target, rest, err) : parse_place(target, rest, err);
}
