#include "archive/xml.h"

#include "base/buf.h"
#include "base/mem.h"

#include <expat.h>
#include <limits.h>

struct reader {
    XML_Parser parser;
    const char *space; /* NULL: any */
    const char *root;
    archive_s3_end_fn *on_end;
    void *ctx;
    unsigned depth; /* open elements */
    bool stopped;   /* by on_end */
    const char *wrong;
    struct rd_buf text;
};

static void stop(struct reader *r, const char *wrong)
{
    if (r->wrong == NULL)
        r->wrong = wrong;
    XML_StopParser(r->parser, XML_FALSE);
}

/* "uri\nname" */
static const char *local_name(const struct reader *r, const char *name)
{
    const char *lf = strrchr(name, '\n');
    size_t len = lf != NULL ? (size_t)(lf - name) : 0;
    if (r->space != NULL && (strlen(r->space) != len || memcmp(r->space, name, len) != 0))
        return "";
    return lf != NULL ? lf + 1 : name;
}

static void XMLCALL on_start(void *ctx, const char *name, const char **attributes)
{
    struct reader *r = ctx;
    (void)attributes;
    if (r->depth == 0 && strcmp(local_name(r, name), r->root) != 0)
        stop(r, "it is another document");
    if (++r->depth > ARCHIVE_S3_DEPTH_MAX)
        stop(r, "it has too many levels");
    rd_buf_reset(&r->text);
}

static void XMLCALL on_text(void *ctx, const char *text, int len)
{
    struct reader *r = ctx;
    if (r->text.len + (size_t)len > ARCHIVE_S3_TEXT_MAX)
        stop(r, "a text is too long");
    else if (!rd_buf_add(&r->text, text, (size_t)len))
        stop(r, "out of memory");
}

static void XMLCALL on_end_tag(void *ctx, const char *name)
{
    struct reader *r = ctx;
    r->depth--;
    if (!r->stopped && r->wrong == NULL &&
        !r->on_end(r->ctx, r->depth, local_name(r, name), rd_buf_slice(&r->text))) {
        r->stopped = true;
        XML_StopParser(r->parser, XML_FALSE);
    }
    rd_buf_reset(&r->text);
}

static void XMLCALL on_doctype(void *ctx, const char *name, const char *system_id,
                               const char *public_id, int internal)
{
    (void)name, (void)system_id, (void)public_id, (void)internal;
    stop(ctx, "it has a document type");
}

static bool parse(struct reader *r, struct rd_slice xml, struct rd_err *err)
{
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end_tag);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
    if (xml.len > INT_MAX)
        return rd_err_set(err, RD_ERR_LIMIT, RD_NO_OFFSET, "the answer of the store is too long");
    enum XML_Status status =
        XML_Parse(r->parser, xml.len > 0 ? (const char *)xml.ptr : "", (int)xml.len, 1);
    if (r->stopped || status == XML_STATUS_OK)
        return !r->stopped;
    if (XML_GetErrorCode(r->parser) == XML_ERROR_NO_MEMORY)
        return rd_err_nomem(err, 0);
    return rd_err_set(err, RD_ERR_PROTOCOL, RD_NO_OFFSET,
                      "the answer of the store is not a whole %s: %s", r->root,
                      r->wrong != NULL ? r->wrong : XML_ErrorString(XML_GetErrorCode(r->parser)));
}

bool archive_xml_of(struct rd_slice xml, const char *space, const char *root,
                    archive_s3_end_fn *on_end, void *ctx, struct rd_err *err)
{
    static const XML_Memory_Handling_Suite memory = {rd_alloc, rd_realloc, rd_free};
    struct reader r = {.space = space, .root = root, .on_end = on_end, .ctx = ctx};
    r.parser = XML_ParserCreate_MM(NULL, &memory, "\n");
    if (r.parser == NULL)
        return rd_err_nomem(err, 0);
    bool ok = parse(&r, xml, err);
    XML_ParserFree(r.parser);
    rd_buf_done(&r.text);
    return ok;
}

bool archive_xml(struct rd_slice xml, const char *root, archive_s3_end_fn *on_end, void *ctx,
                 struct rd_err *err)
{
    return archive_xml_of(xml, NULL, root, on_end, ctx, err);
}
