#include "archive/webdav_answer.h"

#include "archive/xml.h"
#include "base/mem.h"
#include "base/num.h"

#include <curl/curl.h>
#include <stdio.h>

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

bool archive_webdav_decode(char *ret, size_t size, struct rd_slice text)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int c = text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text.ptr[i + 2]) : -1;
            if (low < 0)
                return false;
            c = high * 16 + low;
            i += 2;
        }
        if (c == '\0' || len + 1 >= size)
            return false;
        ret[len++] = (char)c;
    }
    ret[len] = '\0';
    return size > 0;
}

/* ---- a list ---- */

const char *archive_webdav_name(const struct archive_webdav_list *list, size_t i)
{
    return (const char *)list->names.ptr + list->entries[i].name;
}

void archive_webdav_list_done(struct archive_webdav_list *list)
{
    rd_free(list->entries);
    rd_buf_done(&list->names);
    *list = (struct archive_webdav_list){.n = 0};
}

static bool add_entry(struct archive_webdav_list *list, const struct archive_webdav_entry *entry,
                      const char *name)
{
    if (list->n == list->cap) {
        size_t cap = list->cap == 0 ? 16 : 2 * list->cap;
        void *more = rd_realloc(list->entries, cap * sizeof *list->entries);
        if (more == NULL)
            return false;
        list->entries = more;
        list->cap = cap;
    }
    list->entries[list->n] = *entry;
    list->entries[list->n].name = list->names.len;
    if (!rd_buf_add(&list->names, name, strlen(name) + 1))
        return false;
    list->n++;
    return true;
}

/* ---- the document ----
 *
 *     multistatus / response / href
 *                            / status                                  of the response as a whole
 *                            / propstat / prop / resourcetype / collection
 *                                              / getcontentlength …
 *                                       / status                       of these properties
 */

enum { ROOT, RESPONSE, IN_RESPONSE, IN_PROPSTAT, IN_PROP, IN_TYPE };

struct props {
    bool has_type, has_size;
    struct archive_webdav_entry entry;
};

struct reader {
    struct archive_webdav_list *list;
    const char *path;
    struct props found, props; /* of the response; of the propstat that is being read */
    bool props_good, bad, has_href, has_self, no_memory;
    char href[3 * ARCHIVE_WEBDAV_PATH_MAX];
    const char *wrong;
};

static struct rd_slice trim(struct rd_slice text)
{
    while (text.len > 0 && memchr(" \t\r\n", text.ptr[0], 4) != NULL)
        text = rd_slice(text.ptr + 1, text.len - 1);
    while (text.len > 0 && memchr(" \t\r\n", text.ptr[text.len - 1], 4) != NULL)
        text.len--;
    return text;
}

static bool copy(char *ret, size_t size, struct rd_slice text)
{
    bool ok = text.len < size && (text.len == 0 || memchr(text.ptr, 0, text.len) == NULL);
    snprintf(ret, size, "%.*s", ok ? (int)text.len : 0, (const char *)text.ptr);
    return ok;
}

/* "HTTP/1.1 200 OK" */
static bool is_good(struct rd_slice status)
{
    const uint8_t *space = status.len > 0 ? memchr(status.ptr, ' ', status.len) : NULL;
    return space != NULL && space + 1 < status.ptr + status.len && space[1] == '2';
}

/* A weak one ("W/…") may stay when the bytes change. */
static void note_version(struct archive_webdav_entry *entry, struct rd_slice text)
{
    bool ok = text.len > 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"' &&
              copy(entry->version, sizeof entry->version, text);
    for (size_t i = 0; ok && i < text.len; i++)
        ok = text.ptr[i] > ' ' && text.ptr[i] < 127;
    if (!ok)
        entry->version[0] = '\0';
}

static void note_prop(struct props *props, const char *name, struct rd_slice text)
{
    char date[64];
    if (strcmp(name, "resourcetype") == 0)
        props->has_type = true;
    else if (strcmp(name, "getcontentlength") == 0)
        props->has_size = rd_num_get_u64(text, &props->entry.size);
    else if (strcmp(name, "getetag") == 0)
        note_version(&props->entry, text);
    else if (strcmp(name, "getlastmodified") == 0 && copy(date, sizeof date, text))
        props->entry.modified_s = (int64_t)curl_getdate(date, NULL);
}

static void end_of_propstat(struct reader *r)
{
    const struct archive_webdav_entry *e = &r->props.entry;
    if (r->props_good) {
        r->found.has_type = r->found.has_type || r->props.has_type;
        r->found.entry.is_folder = r->found.entry.is_folder || e->is_folder;
        if (r->props.has_size) {
            r->found.has_size = true;
            r->found.entry.size = e->size;
        }
        if (e->modified_s >= 0)
            r->found.entry.modified_s = e->modified_s;
        if (e->version[0] != '\0')
            memcpy(r->found.entry.version, e->version, sizeof e->version);
    }
    r->props = (struct props){.entry.modified_s = -1};
    r->props_good = false;
}

static bool wrong(struct reader *r, const char *what)
{
    r->wrong = what;
    return false;
}

/* The path in an href, which may be a URL: decoded, without slashes at its end. */
static bool path_of(const char *href, char ret[ARCHIVE_WEBDAV_PATH_MAX])
{
    const char *host = href[0] != '/' ? strstr(href, "://") : NULL;
    const char *path = host != NULL ? strchr(host + 3, '/') : href;
    if (path == NULL || path[0] != '/' ||
        !archive_webdav_decode(ret, ARCHIVE_WEBDAV_PATH_MAX, rd_slice_str(path)))
        return false;
    size_t len = strlen(ret);
    while (len > 0 && ret[len - 1] == '/')
        ret[--len] = '\0';
    return true;
}

static bool judge(struct reader *r)
{
    if (r->bad)
        return wrong(r, "the server does not show all of the folder");
    if (!r->found.entry.is_folder && !r->found.has_size)
        return wrong(r, r->found.has_type ? "an object has no size" : "an entry has no type");
    return true;
}

static bool end_of_response(struct reader *r)
{
    char path[ARCHIVE_WEBDAV_PATH_MAX];
    size_t len = strlen(r->path);
    if (!r->has_href || !path_of(r->href, path))
        return wrong(r, "an entry has no name that can be read");
    const char *name = path + len;
    if (strncmp(path, r->path, len) != 0 || (*name != '\0' && *name != '/'))
        return wrong(r, "it names what is in another place");
    if (*name == '\0') {
        r->has_self = true;
        r->list->self = r->found.entry;
        return judge(r);
    }
    if (strchr(name + 1, '/') != NULL)
        return true; /* what is deeper was not asked for */
    if (!judge(r))
        return false;
    r->no_memory = !add_entry(r->list, &r->found.entry, name + 1);
    return !r->no_memory;
}

static bool on_end(void *ctx, unsigned depth, const char *name, struct rd_slice text)
{
    struct reader *r = ctx;
    text = trim(text);
    if (depth == IN_TYPE && strcmp(name, "collection") == 0) {
        r->props.entry.is_folder = true;
    } else if (depth == IN_PROP) {
        note_prop(&r->props, name, text);
    } else if (depth == IN_PROPSTAT && strcmp(name, "status") == 0) {
        r->props_good = is_good(text);
    } else if (depth == IN_RESPONSE && strcmp(name, "propstat") == 0) {
        end_of_propstat(r);
    } else if (depth == IN_RESPONSE && strcmp(name, "href") == 0) {
        r->has_href = !r->has_href && copy(r->href, sizeof r->href, text);
    } else if (depth == IN_RESPONSE && strcmp(name, "status") == 0) {
        r->bad = !is_good(text);
    } else if (depth == RESPONSE && strcmp(name, "response") == 0) {
        if (!end_of_response(r))
            return false;
        r->found = r->props = (struct props){.entry.modified_s = -1};
        r->has_href = r->bad = r->props_good = false;
    }
    return true;
}

bool archive_webdav_parse(struct rd_slice xml, const char *path, struct archive_webdav_list *ret,
                          struct rd_err *err)
{
    struct reader r = {.list = ret, .path = path};
    archive_webdav_list_done(ret);
    r.found = r.props = (struct props){.entry.modified_s = -1};
    bool ok = archive_xml_of(xml, "DAV:", "multistatus", on_end, &r, err);
    if (ok && !r.has_self)
        ok = wrong(&r, "it lacks the folder itself");
    if (r.no_memory)
        rd_err_nomem(err, ret->n * sizeof *ret->entries);
    else if (r.wrong != NULL)
        rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET, "the list of the server is not valid: %s",
                   r.wrong);
    if (!ok)
        archive_webdav_list_done(ret);
    return ok;
}
