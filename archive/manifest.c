#include "archive/manifest.h"

#include "archive/store.h"
#include "base/digest.h"
#include "base/mem.h"
#include "json/members.h"
#include "json/write.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const roles[] = {
#define X(name, word) word,
    ARCHIVE_ROLES(X)
#undef X
};

static const char *const compressions[] = {
#define X(name, word, suffix) word,
    ARCHIVE_COMPRESSIONS(X)
#undef X
        [ARCHIVE_COMPRESSION_CHUNKS] = "chunks",
};

static const char *const suffixes[] = {
#define X(name, word, suffix) suffix,
    ARCHIVE_COMPRESSIONS(X)
#undef X
        [ARCHIVE_COMPRESSION_CHUNKS] = ".chunks",
};

static const char *const signatures[] = {
#define X(name, word) word,
    ARCHIVE_SIGNATURES(X)
#undef X
};

const char *archive_signature_word(enum archive_signature signature)
{
    return signatures[signature];
}

const char *archive_role_word(enum archive_role role)
{
    return roles[role];
}

const char *archive_compression_word(enum archive_compression compression)
{
    return compressions[compression];
}

const char *archive_compression_suffix(enum archive_compression compression)
{
    return suffixes[compression];
}

/* ---- contents ---- */

bool archive_file_set_name(struct archive_file *file, const char *name, bool sealed,
                           struct rd_err *err)
{
    snprintf(file->name, sizeof file->name, "%s", name);
    int len = snprintf(file->object, sizeof file->object, "%s%s%s", name,
                       archive_compression_suffix(file->compression), sealed ? ".sealed" : "");
    return (len > 0 && (size_t)len < sizeof file->object) ||
           rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the name of an object is too long");
}

bool archive_manifest_add_file(struct archive_manifest *m, const struct archive_file *file,
                               struct rd_err *err)
{
    if (m->n_files == ARCHIVE_FILES_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "a set has more than %d files",
                          ARCHIVE_FILES_MAX);
    struct archive_file *files = rd_realloc(m->files, (m->n_files + 1) * sizeof *files);
    if (files == NULL)
        return rd_err_nomem(err, sizeof *files);
    m->files = files;
    m->files[m->n_files++] = *file;
    return true;
}

bool archive_manifest_add_node(struct archive_manifest *m, const struct archive_node *node,
                               struct rd_err *err)
{
    if (m->n_nodes == ARCHIVE_NODES_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "a cluster has more than %d masters",
                          ARCHIVE_NODES_MAX);
    struct archive_node *nodes = rd_realloc(m->nodes, (m->n_nodes + 1) * sizeof *nodes);
    if (nodes == NULL)
        return rd_err_nomem(err, sizeof *nodes);
    m->nodes = nodes;
    m->nodes[m->n_nodes++] = *node;
    return true;
}

bool archive_manifest_add_tag(struct archive_manifest *m, const struct archive_tag *tag,
                              struct rd_err *err)
{
    for (size_t i = 0; i < m->n_tags; i++)
        if (strcmp(m->tags[i].name, tag->name) == 0) {
            m->tags[i] = *tag;
            return true;
        }
    if (m->n_tags == ARCHIVE_TAGS_MAX)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "a set has more than %d tags",
                          ARCHIVE_TAGS_MAX);
    struct archive_tag *tags = rd_realloc(m->tags, (m->n_tags + 1) * sizeof *tags);
    if (tags == NULL)
        return rd_err_nomem(err, sizeof *tags);
    m->tags = tags;
    m->tags[m->n_tags++] = *tag;
    return true;
}

struct archive_db *archive_manifest_db(struct archive_manifest *m, uint64_t db)
{
    for (size_t i = m->n_dbs; i-- > 0;)
        if (m->dbs[i].db == db)
            return &m->dbs[i];
    if (m->n_dbs == ARCHIVE_DBS_MAX)
        return NULL;
    struct archive_db *dbs = rd_realloc(m->dbs, (m->n_dbs + 1) * sizeof *dbs);
    if (dbs == NULL)
        return NULL;
    m->dbs = dbs;
    m->dbs[m->n_dbs] = (struct archive_db){.db = db};
    return &m->dbs[m->n_dbs++];
}

void archive_manifest_done(struct archive_manifest *m)
{
    rd_free(m->files);
    rd_free(m->dbs);
    rd_free(m->nodes);
    rd_free(m->tags);
    *m = (struct archive_manifest){0};
}

/* ---- writing ---- */

static bool put_text(struct rd_buf *out, const char *name, const char *text)
{
    return rd_buf_printf(out, ",\n \"%s\": ", name) && json_quote(out, text);
}

static bool put_sums(struct rd_buf *out, const char *name, const struct archive_sums *sums,
                     bool crc64)
{
    char hex[2 * ARCHIVE_SHA256 + 1];
    rd_digest_hex(hex, rd_slice(sums->sha256, ARCHIVE_SHA256));
    return rd_buf_printf(out, ",\n   \"%s\": {\"bytes\": %" PRIu64 ", \"sha256\": \"%s\"", name,
                         sums->bytes, hex) &&
           (!crc64 || rd_buf_printf(out, ", \"crc64\": \"%016" PRIx64 "\"", sums->crc64)) &&
           rd_buf_add_byte(out, '}');
}

static bool put_file(struct rd_buf *out, const struct archive_file *file)
{
    return rd_buf_printf(out, "\n  {\"name\": ") && json_quote(out, file->name) &&
           rd_buf_printf(out, ", \"object\": ") && json_quote(out, file->object) &&
           rd_buf_printf(out, ",\n   \"role\": \"%s\", \"compression\": \"%s\", \"sealed\": %s",
                         roles[file->role], compressions[file->compression],
                         file->sealed ? "true" : "false") &&
           (file->node == 0 || rd_buf_printf(out, ", \"node\": %" PRIu64, file->node)) &&
           (file->compression != ARCHIVE_COMPRESSION_CHUNKS ||
            rd_buf_printf(out, ", \"added\": %" PRIu64, file->added)) &&
           put_sums(out, "plain", &file->plain, true) &&
           put_sums(out, "stored", &file->stored, false) && rd_buf_add_byte(out, '}');
}

static bool put_node(struct rd_buf *out, const struct archive_node *node)
{
    return rd_buf_printf(out, "\n  {\"id\": ") && json_quote(out, node->id) &&
           rd_buf_printf(out, ", \"host\": ") && json_quote(out, node->host) &&
           rd_buf_printf(out, ", \"port\": %" PRIu64 ",\n   \"slots\": ", node->port) &&
           json_quote(out, node->slots) && rd_buf_printf(out, ",\n   \"replid\": ") &&
           json_quote(out, node->replid) &&
           rd_buf_printf(out, ", \"base\": %" PRIu64 ", \"offset\": %" PRIu64 "}", node->base,
                         node->offset);
}

static bool put_cluster(struct rd_buf *out, const struct archive_manifest *m)
{
    if (m->n_nodes == 0)
        return true;
    bool ok = rd_buf_printf(
        out, ",\n \"moment\": {\"from_us\": %" PRId64 ", \"to_us\": %" PRId64 "},\n \"nodes\": [",
        m->moment_from_us, m->moment_to_us);
    for (size_t i = 0; ok && i < m->n_nodes; i++)
        ok = (i == 0 || rd_buf_add_byte(out, ',')) && put_node(out, &m->nodes[i]);
    return ok && rd_buf_add_byte(out, ']');
}

static bool put_tags(struct rd_buf *out, const struct archive_manifest *m)
{
    if (m->n_tags == 0)
        return true;
    bool ok = rd_buf_printf(out, ",\n \"tags\": {");
    for (size_t i = 0; ok && i < m->n_tags; i++)
        ok = (i == 0 || rd_buf_add(out, ", ", 2)) && json_quote(out, m->tags[i].name) &&
             rd_buf_add(out, ": ", 2) && json_quote(out, m->tags[i].value);
    return ok && rd_buf_add_byte(out, '}');
}

static bool put_lists(struct rd_buf *out, const struct archive_manifest *m)
{
    bool ok = rd_buf_printf(out, ",\n \"dbs\": [");
    for (size_t i = 0; ok && i < m->n_dbs; i++)
        ok = rd_buf_printf(
            out, "%s{\"db\": %" PRIu64 ", \"keys\": %" PRIu64 ", \"expires\": %" PRIu64 "}",
            i > 0 ? ", " : "", m->dbs[i].db, m->dbs[i].keys, m->dbs[i].expires);
    ok = ok && rd_buf_printf(out, "],\n \"files\": [");
    for (size_t i = 0; ok && i < m->n_files; i++)
        ok = (i == 0 || rd_buf_add_byte(out, ',')) && put_file(out, &m->files[i]);
    return ok && rd_buf_add_byte(out, ']');
}

static bool put_body(struct rd_buf *out, const struct archive_manifest *m)
{
    return rd_buf_printf(out, "{\"format\": %d", ARCHIVE_FORMAT) && put_text(out, "id", m->id) &&
           put_text(out, "target", m->target) && put_text(out, "source", m->source) &&
           put_text(out, "host", m->host) && put_text(out, "tool", m->tool) &&
           put_text(out, "server", m->server) &&
           rd_buf_printf(out,
                         ",\n \"begin_ms\": %" PRId64 ",\n \"end_ms\": %" PRId64
                         ",\n \"data_ms\": %" PRId64 ",\n \"rdb_version\": %" PRIu64,
                         m->begin_ms, m->end_ms, m->data_ms, m->rdb_version) &&
           put_text(out, "replid", m->replid) &&
           rd_buf_printf(out,
                         ",\n \"offset\": %" PRIu64 ",\n \"keys\": %" PRIu64
                         ",\n \"expires\": %" PRIu64 ",\n \"functions\": %" PRIu64,
                         m->offset, m->keys, m->expires, m->functions) &&
           (!m->scan || rd_buf_printf(out, ",\n \"scan\": true")) &&
           put_text(out, "key_id", m->key_id) && put_tags(out, m) && put_cluster(out, m) &&
           put_lists(out, m);
}

static bool put_digest(struct rd_buf *out, const char *name, const uint8_t *sum)
{
    char hex[2 * ARCHIVE_SHA256 + 1];
    return rd_buf_printf(out, ",\n \"%s\": \"%s\"", name,
                         rd_digest_hex(hex, rd_slice(sum, ARCHIVE_SHA256)));
}

bool archive_manifest_print(const struct archive_manifest *m, const struct rd_seal_key *key,
                            struct rd_buf *ret, struct rd_err *err)
{
    uint8_t sum[RD_DIGEST_MAX];
    struct rd_buf out = {0};
    bool ok = put_body(&out, m) || rd_err_nomem(err, out.len);
    ok = ok && rd_digest_of(RD_DIGEST_SHA256, rd_buf_slice(&out), sum, err) &&
         (put_digest(&out, "sha256", sum) || rd_err_nomem(err, out.len));
    if (ok && key != NULL)
        ok = rd_seal_hmac(key, rd_buf_slice(&out), sum, err) &&
             (put_digest(&out, "hmac", sum) || rd_err_nomem(err, out.len));
    ok = ok && ((rd_buf_add(&out, "}\n", 2) && rd_buf_add(ret, out.ptr, out.len)) ||
                rd_err_nomem(err, out.len));
    rd_buf_done(&out);
    return ok;
}

/* ---- the digests at the end ---- */

/* Cuts `,\n "NAME": "HEX"` off the end of *text. Only the lower-case digits that are written match.
 */
static bool cut_digest(struct rd_slice *text, const char *name, uint8_t ret[ARCHIVE_SHA256])
{
    char head[24], hex[2 * ARCHIVE_SHA256 + 1];
    size_t head_len = (size_t)snprintf(head, sizeof head, ",\n \"%s\": \"", name);
    size_t len = head_len + 2 * ARCHIVE_SHA256 + 1;
    if (text->len < len)
        return false;
    const uint8_t *tail = text->ptr + text->len - len, *digits = tail + head_len;
    if (memcmp(tail, head, head_len) != 0 || tail[len - 1] != '"' ||
        !rd_digest_get_hex(rd_slice(digits, 2 * ARCHIVE_SHA256), ret, ARCHIVE_SHA256) ||
        memcmp(rd_digest_hex(hex, rd_slice(ret, ARCHIVE_SHA256)), digits, 2 * ARCHIVE_SHA256) != 0)
        return false;
    text->len -= len;
    return true;
}

static bool check_digests(struct archive_manifest *m, struct rd_slice text, struct rd_err *err)
{
    uint8_t want[ARCHIVE_SHA256], sum[RD_DIGEST_MAX];
    if (text.len < 2 || memcmp(text.ptr + text.len - 2, "}\n", 2) != 0)
        return rd_err_set(err, RD_ERR_TRUNCATED, text.len, "the manifest is truncated");
    text.len -= 2;
    m->has_hmac = cut_digest(&text, "hmac", m->hmac);
    m->signed_len = text.len;
    if (!cut_digest(&text, "sha256", want))
        return rd_err_set(err, RD_ERR_CORRUPT, text.len, "the manifest has no digest");
    if (!rd_digest_of(RD_DIGEST_SHA256, text, sum, err))
        return false;
    return memcmp(sum, want, ARCHIVE_SHA256) == 0 ||
           rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                      "the digest of the manifest does not match");
}

/* ---- the signature ---- */

bool archive_manifest_verify(struct archive_manifest *m, struct rd_slice text,
                             const struct rd_seal_key *key, struct rd_err *err)
{
    char id[RD_SEAL_ID_HEX];
    uint8_t sum[RD_SEAL_HMAC];
    if (!m->has_hmac)
        return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET, "the manifest is not signed");
    if (!rd_seal_hmac(key, rd_slice(text.ptr, m->signed_len), sum, err))
        return false;
    if (strcmp(rd_seal_key_id(key, id), m->key_id) != 0 || !rd_seal_hmac_same(sum, m->hmac))
        return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                          "the manifest was not signed with this key");
    m->signature = ARCHIVE_SIGNATURE_VALID;
    return true;
}

static const struct rd_seal_key *key_of(const struct archive_manifest *m,
                                        const struct rd_seal_ring *ring)
{
    char id[RD_SEAL_ID_HEX];
    for (size_t i = 0; ring != NULL && i < ring->n_keys; i++)
        if (strcmp(rd_seal_key_id(&ring->keys[i], id), m->key_id) == 0)
            return &ring->keys[i];
    return NULL;
}

/* A set that is sealed names a key and is signed with it. */
static bool is_consistent(const struct archive_manifest *m, struct rd_err *err)
{
    bool sealed = m->key_id[0] != '\0';
    if (sealed && !m->has_hmac)
        return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                          "the manifest names a key but is not signed");
    if (!sealed && m->has_hmac)
        return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                          "the manifest is signed but names no key");
    for (size_t i = 0; !sealed && i < m->n_files; i++)
        if (m->files[i].sealed)
            return rd_err_set(err, RD_ERR_CHECKSUM, RD_NO_OFFSET,
                              "the manifest of a sealed set is not signed");
    return true;
}

static bool judge_signature(struct archive_manifest *m, struct rd_slice text,
                            const struct rd_seal_ring *ring, struct rd_err *err)
{
    if (!is_consistent(m, err))
        return false;
    m->signature = m->has_hmac ? ARCHIVE_SIGNATURE_UNKNOWN : ARCHIVE_SIGNATURE_NONE;
    const struct rd_seal_key *key = m->has_hmac ? key_of(m, ring) : NULL;
    return key == NULL || archive_manifest_verify(m, text, key, err);
}

/* ---- reading ---- */

static bool get_choice(struct json_members *in, const char *const *words, size_t n, unsigned *ret)
{
    char word[32];
    if (!json_members_string(in, word, sizeof word))
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret = i;
            return true;
        }
    }
    return json_members_fail(in, "unknown word");
}

static void get_sums(struct json_members *in, struct archive_sums *sums)
{
    char name[32];
    uint8_t crc64[8];
    json_members_begin(in, '{');
    while (json_members_next(in, name, sizeof name)) {
        if (strcmp(name, "bytes") == 0) {
            json_members_u64(in, &sums->bytes);
        } else if (strcmp(name, "sha256") == 0) {
            json_members_hex(in, sums->sha256, sizeof sums->sha256);
        } else if (strcmp(name, "crc64") == 0) {
            if (json_members_hex(in, crc64, sizeof crc64))
                for (size_t i = 0; i < sizeof crc64; i++)
                    sums->crc64 = sums->crc64 << 8 | crc64[i];
        } else {
            json_members_skip(in);
        }
    }
}

static bool file_ok(const struct archive_file *file)
{
    return archive_name_ok(file->object) && strcmp(file->object, "manifest.json") != 0 &&
           archive_name_ok(file->name);
}

static void get_file(struct json_members *in, struct archive_file *file)
{
    char name[32];
    unsigned choice = 0;
    json_members_begin(in, '{');
    while (json_members_next(in, name, sizeof name)) {
        if (strcmp(name, "name") == 0) {
            json_members_string(in, file->name, sizeof file->name);
        } else if (strcmp(name, "object") == 0) {
            json_members_string(in, file->object, sizeof file->object);
        } else if (strcmp(name, "role") == 0) {
            get_choice(in, roles, ARCHIVE_ROLE_COUNT, &choice);
            file->role = (enum archive_role)choice;
        } else if (strcmp(name, "compression") == 0) {
            get_choice(in, compressions, ARCHIVE_COMPRESSION_ALL, &choice);
            file->compression = (enum archive_compression)choice;
        } else if (strcmp(name, "sealed") == 0) {
            json_members_bool(in, &file->sealed);
        } else if (strcmp(name, "node") == 0) {
            json_members_u64(in, &file->node);
        } else if (strcmp(name, "added") == 0) {
            json_members_u64(in, &file->added);
        } else if (strcmp(name, "plain") == 0) {
            get_sums(in, &file->plain);
        } else if (strcmp(name, "stored") == 0) {
            get_sums(in, &file->stored);
        } else {
            json_members_skip(in);
        }
    }
    if (json_members_ok(in) && !file_ok(file))
        json_members_fail(in, "invalid file name");
}

static void get_files(struct json_members *in, struct archive_manifest *m)
{
    json_members_begin(in, '[');
    while (json_members_element(in)) {
        struct archive_file file = {0};
        get_file(in, &file);
        if (json_members_ok(in))
            archive_manifest_add_file(m, &file, &in->err);
    }
}

static void get_node(struct json_members *in, struct archive_node *node)
{
    char name[32];
    json_members_begin(in, '{');
    while (json_members_next(in, name, sizeof name)) {
        if (strcmp(name, "id") == 0)
            json_members_string(in, node->id, sizeof node->id);
        else if (strcmp(name, "host") == 0)
            json_members_string(in, node->host, sizeof node->host);
        else if (strcmp(name, "port") == 0)
            json_members_u64(in, &node->port);
        else if (strcmp(name, "slots") == 0)
            json_members_string(in, node->slots, sizeof node->slots);
        else if (strcmp(name, "replid") == 0)
            json_members_string(in, node->replid, sizeof node->replid);
        else if (strcmp(name, "base") == 0)
            json_members_u64(in, &node->base);
        else if (strcmp(name, "offset") == 0)
            json_members_u64(in, &node->offset);
        else
            json_members_skip(in);
    }
}

static void get_nodes(struct json_members *in, struct archive_manifest *m)
{
    json_members_begin(in, '[');
    while (json_members_element(in)) {
        struct archive_node node = {.port = 0};
        get_node(in, &node);
        if (json_members_ok(in))
            archive_manifest_add_node(m, &node, &in->err);
    }
}

static void get_tags(struct json_members *in, struct archive_manifest *m)
{
    struct archive_tag tag;
    json_members_begin(in, '{');
    while (json_members_next(in, tag.name, sizeof tag.name)) {
        if (!json_members_string(in, tag.value, sizeof tag.value))
            return;
        if (!archive_tag_ok(&tag))
            json_members_fail(in, "invalid tag");
        else
            archive_manifest_add_tag(m, &tag, &in->err);
    }
}

static void get_moment(struct json_members *in, struct archive_manifest *m)
{
    char name[32];
    json_members_begin(in, '{');
    while (json_members_next(in, name, sizeof name)) {
        if (strcmp(name, "from_us") == 0)
            json_members_i64(in, &m->moment_from_us);
        else if (strcmp(name, "to_us") == 0)
            json_members_i64(in, &m->moment_to_us);
        else
            json_members_skip(in);
    }
}

static void get_db(struct json_members *in, struct archive_db *db)
{
    char name[32];
    json_members_begin(in, '{');
    while (json_members_next(in, name, sizeof name)) {
        if (strcmp(name, "db") == 0)
            json_members_u64(in, &db->db);
        else if (strcmp(name, "keys") == 0)
            json_members_u64(in, &db->keys);
        else if (strcmp(name, "expires") == 0)
            json_members_u64(in, &db->expires);
        else
            json_members_skip(in);
    }
}

static void get_dbs(struct json_members *in, struct archive_manifest *m)
{
    json_members_begin(in, '[');
    while (json_members_element(in)) {
        struct archive_db db = {0};
        get_db(in, &db);
        struct archive_db *place = json_members_ok(in) ? archive_manifest_db(m, db.db) : NULL;
        if (place != NULL)
            *place = db;
        else if (json_members_ok(in))
            rd_err_set(&in->err, RD_ERR_LIMIT, RD_NO_OFFSET, "too many databases");
    }
}

static bool get_text_member(struct json_members *in, struct archive_manifest *m, const char *name)
{
    const struct {
        const char *name;
        char *dst;
        size_t cap;
    } texts[] = {
        {"id", m->id, sizeof m->id},
        {"target", m->target, sizeof m->target},
        {"source", m->source, sizeof m->source},
        {"host", m->host, sizeof m->host},
        {"tool", m->tool, sizeof m->tool},
        {"server", m->server, sizeof m->server},
        {"replid", m->replid, sizeof m->replid},
        {"key_id", m->key_id, sizeof m->key_id},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(name, texts[i].name) == 0) {
            json_members_string(in, texts[i].dst, texts[i].cap);
            return true;
        }
    }
    return false;
}

static bool get_number_member(struct json_members *in, struct archive_manifest *m, const char *name)
{
    const struct {
        const char *name;
        int64_t *time;
        uint64_t *count;
    } numbers[] = {
        {"begin_ms", &m->begin_ms, NULL}, {"end_ms", &m->end_ms, NULL},
        {"data_ms", &m->data_ms, NULL},   {"rdb_version", NULL, &m->rdb_version},
        {"offset", NULL, &m->offset},     {"keys", NULL, &m->keys},
        {"expires", NULL, &m->expires},   {"functions", NULL, &m->functions},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(name, numbers[i].name) != 0)
            continue;
        if (numbers[i].time != NULL)
            json_members_i64(in, numbers[i].time);
        else
            json_members_u64(in, numbers[i].count);
        return true;
    }
    return false;
}

static void get_format(struct json_members *in)
{
    uint64_t format = 0;
    if (json_members_u64(in, &format) && format != ARCHIVE_FORMAT)
        rd_err_set(&in->err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET, "unknown manifest format %" PRIu64,
                   format);
}

/* What restore writes into the configuration of a node. */
static bool node_ok(const struct archive_node *node)
{
    return archive_name_ok(node->id) && node->slots[strspn(node->slots, "0123456789-,")] == '\0' &&
           node->replid[strspn(node->replid, "0123456789abcdef")] == '\0';
}

/* In a cluster each file belongs to a node, elsewhere none does. */
static bool check_nodes(struct json_members *in, const struct archive_manifest *m)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (m->files[i].node > m->n_nodes || (m->n_nodes > 0 && m->files[i].node == 0))
            return json_members_fail(in, "a file belongs to an unknown node");
    for (size_t i = 0; i < m->n_nodes; i++)
        if (!node_ok(&m->nodes[i]))
            return json_members_fail(in, "a node has an invalid id, slots or history");
    return true;
}

static bool get_manifest(struct json_members *in, struct archive_manifest *m)
{
    char name[32];
    json_members_begin(in, '{');
    while (json_members_next(in, name, sizeof name)) {
        if (strcmp(name, "format") == 0)
            get_format(in);
        else if (strcmp(name, "files") == 0)
            get_files(in, m);
        else if (strcmp(name, "dbs") == 0)
            get_dbs(in, m);
        else if (strcmp(name, "nodes") == 0)
            get_nodes(in, m);
        else if (strcmp(name, "tags") == 0)
            get_tags(in, m);
        else if (strcmp(name, "scan") == 0)
            json_members_bool(in, &m->scan);
        else if (strcmp(name, "moment") == 0)
            get_moment(in, m);
        else if (!get_text_member(in, m, name) && !get_number_member(in, m, name))
            json_members_skip(in);
    }
    if (!json_members_end(in))
        return false;
    return check_nodes(in, m) && ((archive_name_ok(m->id) && m->n_files > 0) ||
                                  json_members_fail(in, "the manifest has no id or no files"));
}

static bool parse(struct archive_manifest *m, struct rd_slice text, struct rd_err *err)
{
    struct json_members in;
    bool ok = json_members_open(&in, text) && get_manifest(&in, m);
    json_members_close(&in);
    if (!ok)
        rd_err_adopt(err, &in.err);
    return ok;
}

bool archive_manifest_parse(struct archive_manifest *ret, struct rd_slice text,
                            const struct rd_seal_ring *ring, struct rd_err *err)
{
    struct archive_manifest m = {0};
    if (text.len > ARCHIVE_MANIFEST_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the manifest is too large");
    if (!check_digests(&m, text, err) || !parse(&m, text, err) ||
        !judge_signature(&m, text, ring, err)) {
        archive_manifest_done(&m);
        return false;
    }
    *ret = m;
    return true;
}
