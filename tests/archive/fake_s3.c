#include "tests/archive/fake_s3.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OBJECTS = 64, KEY = 300, HEAD = 16384, UPLOADS = 8, BODY = 1 << 20 };

struct object {
    char key[KEY];
    char *bytes;
    size_t len;
};

struct fake_s3 {
    int listener, client;
    unsigned port;
    pthread_t thread;
    struct object objects[OBJECTS];
    size_t n_objects;
    struct object uploads[UPLOADS]; /* key "": free; bytes: its parts, in order */
    struct fake_answer answer;
    bool has_answer, always;
    unsigned at, count, page;
    size_t part; /* bytes of all parts but the last */
};

struct ask {
    char method[8], path[4096], range[64];
    bool condition;
    char *body;
    size_t len;
};

struct reply {
    int status;
    char headers[200];
    char body[BODY / 16];
    const char *bytes; /* instead of body */
    size_t len;
};

/* ---- objects ---- */

static size_t index_of(const struct fake_s3 *fake, const char *key)
{
    size_t i = 0;
    while (i < fake->n_objects && strcmp(fake->objects[i].key, key) != 0)
        i++;
    return i;
}

static struct object *find(struct fake_s3 *fake, const char *key)
{
    size_t i = index_of(fake, key);
    return i < fake->n_objects ? &fake->objects[i] : NULL;
}

static void append(struct object *object, const void *bytes, size_t len)
{
    object->bytes = realloc(object->bytes, object->len + len + 1);
    if (len > 0)
        memcpy(object->bytes + object->len, bytes, len);
    object->len += len;
}

void fake_s3_set(struct fake_s3 *fake, const char *key, const void *bytes, size_t len)
{
    struct object *object = find(fake, key);
    if (object == NULL && fake->n_objects == OBJECTS)
        abort();
    if (object == NULL) {
        object = &fake->objects[fake->n_objects++];
        *object = (struct object){.bytes = NULL};
        snprintf(object->key, sizeof object->key, "%s", key);
    }
    object->len = 0;
    append(object, bytes, len);
}

static void remove_object(struct fake_s3 *fake, struct object *object)
{
    free(object->bytes);
    *object = fake->objects[--fake->n_objects];
}

void fake_s3_clear(struct fake_s3 *fake)
{
    while (fake->n_objects > 0)
        remove_object(fake, &fake->objects[0]);
    for (size_t i = 0; i < UPLOADS; i++) {
        free(fake->uploads[i].bytes);
        fake->uploads[i] = (struct object){.bytes = NULL};
    }
}

bool fake_s3_has(const struct fake_s3 *fake, const char *key)
{
    return index_of(fake, key) < fake->n_objects;
}

bool fake_s3_is(const struct fake_s3 *fake, const char *key, const void *bytes, size_t len)
{
    size_t i = index_of(fake, key);
    const struct object *object = &fake->objects[i];
    return i < fake->n_objects && object->len == len && memcmp(object->bytes, bytes, len) == 0;
}

size_t fake_s3_objects(const struct fake_s3 *fake)
{
    return fake->n_objects;
}

size_t fake_s3_uploads(const struct fake_s3 *fake)
{
    size_t n = 0;
    for (size_t i = 0; i < UPLOADS; i++)
        n += fake->uploads[i].key[0] != '\0';
    return n;
}

/* ---- what it does ---- */

static void say(struct reply *reply, int status, const char *root, const char *inner)
{
    reply->status = status;
    reply->len =
        (size_t)snprintf(reply->body, sizeof reply->body, "<%s>%s</%s>", root, inner, root);
    reply->bytes = reply->body;
}

static void refuse(struct reply *reply, int status, const char *code)
{
    char inner[200];
    snprintf(inner, sizeof inner, "<Code>%s</Code><Message>so it is</Message>", code);
    say(reply, status, "Error", inner);
}

/* The keys are unreserved characters and slashes, and so is what is asked for. */
static const char *query_of(const char *path, const char *name)
{
    const char *at = strstr(path, name);
    return at != NULL ? at + strlen(name) : "";
}

static void unescape(char *text)
{
    char *out = text;
    for (const char *at = text; *at != '\0' && *at != '&'; at++) {
        unsigned code;
        if (*at == '%' && sscanf(at + 1, "%2x", &code) == 1) {
            *out++ = (char)code;
            at += 2;
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct object *)a)->key, ((const struct object *)b)->key);
}

static void list(struct fake_s3 *fake, const char *path, struct reply *reply)
{
    char prefix[KEY], rows[sizeof reply->body - 100] = "";
    unsigned seen = 0, begin = (unsigned)atoi(query_of(path, "continuation-token=t"));
    size_t len = 0;
    bool more = false;
    snprintf(prefix, sizeof prefix, "%s", query_of(path, "prefix="));
    unescape(prefix);
    qsort(fake->objects, fake->n_objects, sizeof *fake->objects, by_key);
    for (size_t i = 0; i < fake->n_objects; i++) {
        const struct object *o = &fake->objects[i];
        if (strncmp(o->key, prefix, strlen(prefix)) != 0 || seen++ < begin)
            continue;
        more = seen > begin + fake->page;
        if (!more)
            len += (size_t)snprintf(rows + len, sizeof rows - len,
                                    "<Contents><Key>%s</Key><Size>%zu</Size></Contents>", o->key,
                                    o->len);
    }
    snprintf(rows + len, sizeof rows - len,
             more ? "<IsTruncated>true</IsTruncated><NextContinuationToken>t%u"
                    "</NextContinuationToken>"
                  : "<IsTruncated>false</IsTruncated>",
             begin + fake->page);
    say(reply, 200, "ListBucketResult", rows);
}

static void upload(struct fake_s3 *fake, const struct ask *ask, const char *key,
                   struct reply *reply)
{
    size_t i = 0;
    char inner[100];
    if (strstr(ask->path, "uploads=") != NULL) {
        while (fake->uploads[i].key[0] != '\0')
            i++;
        snprintf(fake->uploads[i].key, KEY, "%s", key);
        snprintf(inner, sizeof inner, "<UploadId>u%zu</UploadId>", i);
        say(reply, 200, "InitiateMultipartUploadResult", inner);
        return;
    }
    i = (size_t)atoi(query_of(ask->path, "uploadId=u"));
    struct object *up = &fake->uploads[i < UPLOADS ? i : 0];
    if (up->key[0] == '\0') {
        refuse(reply, 404, "NoSuchUpload");
        return;
    }
    if (strcmp(ask->method, "PUT") == 0) {
        size_t number = (size_t)atoi(query_of(ask->path, "partNumber="));
        up->len = (number - 1) * fake->part; /* a part may be sent again */
        append(up, ask->body, ask->len);
        snprintf(reply->headers, sizeof reply->headers, "ETag: \"part\"\r\n");
        return;
    }
    bool complete = strcmp(ask->method, "POST") == 0;
    if (complete && ask->condition && find(fake, key) != NULL) {
        refuse(reply, 412, "PreconditionFailed");
        return;
    }
    if (complete) {
        fake_s3_set(fake, key, up->bytes, up->len);
        say(reply, 200, "CompleteMultipartUploadResult", "");
    } else {
        reply->status = 204;
    }
    free(up->bytes);
    *up = (struct object){.bytes = NULL};
}

static void send_object(const struct object *object, const struct ask *ask, struct reply *reply)
{
    size_t from = 0, to = object->len;
    snprintf(reply->headers, sizeof reply->headers, "ETag: \"object\"\r\n");
    if (sscanf(ask->range, " bytes=%zu-%zu", &from, &to) == 2) {
        reply->status = 206;
        to = to + 1 < object->len ? to + 1 : object->len;
    }
    reply->bytes = object->bytes + from;
    reply->len = to - from;
}

static void serve(struct fake_s3 *fake, const struct ask *ask, struct reply *reply)
{
    char key[KEY];
    const char *slash = strchr(ask->path + 1, '/');
    reply->status = 200;
    snprintf(key, sizeof key, "%.*s", slash != NULL ? (int)strcspn(slash + 1, "?") : 0,
             slash != NULL ? slash + 1 : "");
    struct object *object = find(fake, key);
    if (key[0] == '\0' && strstr(ask->path, "uploads=") != NULL)
        say(reply, 200, "ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>");
    else if (key[0] == '\0')
        list(fake, ask->path, reply);
    else if (strstr(ask->path, "upload") != NULL)
        upload(fake, ask, key, reply);
    else if (strcmp(ask->method, "PUT") == 0 && ask->condition && object != NULL)
        refuse(reply, 412, "PreconditionFailed");
    else if (strcmp(ask->method, "PUT") == 0) {
        fake_s3_set(fake, key, ask->body, ask->len);
        snprintf(reply->headers, sizeof reply->headers, "ETag: \"object\"\r\n");
    } else if (strcmp(ask->method, "DELETE") == 0) {
        if (object != NULL)
            remove_object(fake, object);
        reply->status = 204;
    } else if (object == NULL)
        refuse(reply, 404, "NoSuchKey");
    else
        send_object(object, ask, reply);
}

/* ---- connections ---- */

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* False: the connection ends. */
static bool send_reply(struct fake_s3 *fake, const struct ask *ask, const struct reply *reply,
                       const struct fake_answer *answer)
{
    static char head[600 + BODY / 8];
    static const struct fake_answer right;
    (void)fake;
    const struct fake_answer *a = answer != NULL ? answer : &right;
    const char *body = a->body != NULL ? a->body : reply->bytes;
    size_t len = a->body != NULL ? strlen(a->body) : reply->len;
    size_t sent = a->keep > 0 ? len * (size_t)a->keep / 1000 : len;
    const char *headers = a->headers != NULL ? a->headers : a->body != NULL ? "" : reply->headers;
    bool is_head = strcmp(ask->method, "HEAD") == 0;
    if (a->cut)
        return false;
    int n = snprintf(head, 600, "HTTP/1.1 %d Answer\r\n%sContent-Length: %zu\r\n\r\n",
                     a->status != 0 ? a->status : reply->status, headers,
                     a->whole && !is_head ? sent : len);
    /* In one packet: the other end would wait for the second one. */
    if (is_head || sent > BODY / 8)
        sent = 0;
    if (sent > 0)
        memcpy(head + n, body, sent);
    return send_all(fake->client, head, (size_t)n + sent) && (a->keep == 0 || a->whole);
}

static void header(struct ask *ask, const char *line)
{
    if (strncasecmp(line, "Content-Length:", 15) == 0)
        ask->len = (size_t)atol(line + 15);
    else if (strncasecmp(line, "If-None-Match:", 14) == 0)
        ask->condition = true;
    else if (strncasecmp(line, "Range:", 6) == 0)
        snprintf(ask->range, sizeof ask->range, "%s", line + 6);
}

/* The client waits for an answer before it asks again, so nothing follows a request. */
static bool read_ask(int fd, struct ask *ask)
{
    static char head[HEAD];
    size_t len = 0;
    char *end = NULL;
    *ask = (struct ask){.body = NULL};
    while (end == NULL) {
        ssize_t n = len + 1 < sizeof head ? recv(fd, head + len, sizeof head - 1 - len, 0) : 0;
        if (n <= 0)
            return false;
        len += (size_t)n;
        head[len] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    end += 4;
    sscanf(head, "%7s %4095s", ask->method, ask->path);
    for (char *line = strstr(head, "\r\n"); line + 4 != end; line = strstr(line + 2, "\r\n"))
        header(ask, line + 2);
    ask->body = malloc(ask->len + 1);
    size_t at = len - (size_t)(end - head);
    memcpy(ask->body, end, at);
    while (at < ask->len) {
        ssize_t n = recv(fd, ask->body + at, ask->len - at, 0);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool one_request(struct fake_s3 *fake)
{
    static struct reply reply;
    struct ask ask;
    bool ok = read_ask(fake->client, &ask);
    if (ok) {
        unsigned n = ++fake->count;
        bool hit = fake->has_answer && (n == fake->at || (fake->always && n > fake->at));
        memset(&reply, 0, offsetof(struct reply, body));
        reply.bytes = NULL;
        reply.len = 0;
        reply.status = 200;
        if (!hit || fake->answer.done || (fake->answer.body == NULL && !fake->answer.cut))
            serve(fake, &ask, &reply);
        ok = send_reply(fake, &ask, &reply, hit ? &fake->answer : NULL);
    }
    free(ask.body);
    return ok;
}

static void *work(void *ctx)
{
    struct fake_s3 *fake = ctx;
    while ((fake->client = accept(fake->listener, NULL, NULL)) >= 0) {
        while (one_request(fake))
            ;
        close(fake->client);
    }
    return NULL;
}

struct fake_s3 *fake_s3_start(void)
{
    struct fake_s3 *fake = calloc(1, sizeof *fake);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fake->page = 1000;
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fake->listener, (struct sockaddr *)&address, len) != 0 ||
        listen(fake->listener, 16) != 0 ||
        getsockname(fake->listener, (struct sockaddr *)&address, &len) != 0 ||
        pthread_create(&fake->thread, NULL, work, fake) != 0)
        abort();
    fake->port = ntohs(address.sin_port);
    return fake;
}

/* Every store that uses it must be closed. */
void fake_s3_stop(struct fake_s3 *fake)
{
    shutdown(fake->listener, SHUT_RDWR);
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    fake_s3_clear(fake);
    free(fake);
}

unsigned fake_s3_port(const struct fake_s3 *fake)
{
    return fake->port;
}

void fake_s3_answer(struct fake_s3 *fake, const struct fake_answer *answer, unsigned n, bool always)
{
    fake->has_answer = answer != NULL;
    if (answer != NULL)
        fake->answer = *answer;
    fake->at = n;
    fake->always = always;
    fake->count = 0;
}

unsigned fake_s3_count(const struct fake_s3 *fake)
{
    return fake->count;
}

void fake_s3_part(struct fake_s3 *fake, size_t size)
{
    fake->part = size;
}

void fake_s3_page(struct fake_s3 *fake, unsigned n)
{
    fake->page = n;
}
