#include "repl/payload.h"

#include "base/num.h"

static const char BY_MARK[] = "EOF:";
static const char SECOND_CHANNEL[] = "ENDOFF:";

static bool begins(struct rd_slice text, const char *with)
{
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.ptr, with, len) == 0;
}

bool repl_payload_parse(struct repl_payload *p, struct rd_slice line, struct rd_err *err)
{
    struct repl_payload made = {0};
    char quoted[80];
    if (line.len > 0 && line.ptr[0] == '$') {
        struct rd_slice rest = rd_slice(line.ptr + 1, line.len - 1);
        const size_t before = sizeof BY_MARK - 1;
        made.by_mark = begins(rest, BY_MARK);
        if (begins(rest, SECOND_CHANNEL))
            return rd_err_set(err, RD_ERR_UNSUPPORTED, RD_NO_OFFSET,
                              "the master wants a second connection for the snapshot");
        if (made.by_mark && rest.len == before + REPL_MARK_LEN) {
            memcpy(made.mark, rest.ptr + before, REPL_MARK_LEN);
            *p = made;
            return true;
        }
        if (!made.by_mark && rd_num_get_u64(rest, &made.len) && made.len <= INT64_MAX) {
            *p = made;
            return true;
        }
    }
    rd_err_quote(quoted, sizeof quoted, line);
    return rd_err_set(err, RD_ERR_CORRUPT, RD_NO_OFFSET, "not the start of a snapshot: %s", quoted);
}

size_t repl_payload_put(const struct repl_payload *p, uint8_t dst[REPL_PAYLOAD_HEADER_MAX])
{
    size_t len = 1;
    dst[0] = '$';
    if (p->by_mark) {
        memcpy(dst + len, BY_MARK, sizeof BY_MARK - 1);
        len += sizeof BY_MARK - 1;
        memcpy(dst + len, p->mark, REPL_MARK_LEN);
        len += REPL_MARK_LEN;
    } else {
        len += rd_num_put_u64((char *)dst + len, p->len);
    }
    dst[len++] = '\r';
    dst[len++] = '\n';
    return len;
}

static enum repl_payload_status give_piece(struct repl_payload *p, struct rd_slice bytes,
                                           size_t len, struct rd_slice *ret, size_t *ret_used)
{
    *ret = rd_slice(bytes.ptr, len);
    *ret_used = len;
    p->done += len;
    return len > 0 ? REPL_PAYLOAD_PIECE : REPL_PAYLOAD_WANTS;
}

/* The number of bytes at the end that could be the start of the mark. There is no complete mark. */
static size_t held_back(const struct repl_payload *p, struct rd_slice bytes)
{
    size_t len = bytes.len < REPL_MARK_LEN - 1 ? bytes.len : REPL_MARK_LEN - 1;
    for (; len > 0; len--)
        if (memcmp(bytes.ptr + bytes.len - len, p->mark, len) == 0)
            break;
    return len;
}

static enum repl_payload_status take_to_mark(struct repl_payload *p, struct rd_slice bytes,
                                             struct rd_slice *ret, size_t *ret_used)
{
    const uint8_t *mark =
        bytes.len > 0 ? memmem(bytes.ptr, bytes.len, p->mark, REPL_MARK_LEN) : NULL;
    if (mark == NULL)
        return give_piece(p, bytes, bytes.len - held_back(p, bytes), ret, ret_used);
    if (mark > bytes.ptr)
        return give_piece(p, bytes, (size_t)(mark - bytes.ptr), ret, ret_used);
    *ret = rd_slice(bytes.ptr, 0);
    *ret_used = REPL_MARK_LEN;
    return REPL_PAYLOAD_AT_END;
}

enum repl_payload_status repl_payload_take(struct repl_payload *p, struct rd_slice bytes,
                                           struct rd_slice *ret, size_t *ret_used)
{
    if (p->by_mark)
        return take_to_mark(p, bytes, ret, ret_used);
    uint64_t left = p->len - p->done;
    if (left > 0)
        return give_piece(p, bytes, left < bytes.len ? (size_t)left : bytes.len, ret, ret_used);
    *ret = rd_slice(bytes.ptr, 0);
    *ret_used = 0;
    return REPL_PAYLOAD_AT_END;
}
