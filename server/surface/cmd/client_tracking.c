/* CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO. */
#include "server/surface/cmd/client.h"

#include "engine/mem.h"
#include "server/session/tracking/tracking.h"

struct request {
    unsigned options; /* enum tracking_flag */
    int64_t redirect;
    struct rd_slice *prefixes;
    size_t n_prefixes;
};

static bool fail(struct dispatch_call *call, const char *text)
{
    engine_reply_error(call->reply, text);
    return false;
}

/* ---- the options ---- */

static bool read_redirect(struct dispatch_call *call, struct rd_slice id, struct request *r)
{
    if (r->redirect != 0)
        return fail(call, "ERR A client can only redirect to a single other client");
    if (!dispatch_arg_i64(call, id, INT64_MIN, INT64_MAX, &r->redirect, NULL))
        return false;
    if (r->redirect <= 0 || client_find(call->sessions, (uint64_t)r->redirect) == NULL)
        return fail(call, "ERR The client ID you want redirect to does not exist");
    return true;
}

static unsigned option_of(struct rd_slice word)
{
    static const struct {
        const char *word;
        unsigned flag;
    } rows[] = {{"bcast", TRACKING_BCAST},
                {"optin", TRACKING_OPTIN},
                {"optout", TRACKING_OPTOUT},
                {"noloop", TRACKING_NOLOOP}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (dispatch_arg_is(word, rows[i].word))
            return rows[i].flag;
    return 0;
}

static bool read_options(struct dispatch_call *call, struct request *r)
{
    for (size_t i = 3; i < call->argc; i++) {
        bool more = i + 1 < call->argc;
        unsigned option = option_of(call->argv[i]);
        if (dispatch_arg_is(call->argv[i], "redirect") && more) {
            if (!read_redirect(call, call->argv[++i], r))
                return false;
        } else if (dispatch_arg_is(call->argv[i], "prefix") && more) {
            r->prefixes[r->n_prefixes++] = call->argv[++i];
        } else if (option != 0) {
            r->options |= option;
        } else {
            return fail(call, "ERR syntax error");
        }
    }
    return true;
}

/* ---- which options can be combined ---- */

static bool overlap(struct rd_slice a, struct rd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    return n == 0 || memcmp(a.ptr, b.ptr, n) == 0;
}

static bool fail_overlap(struct dispatch_call *call, struct rd_slice a, const char *what,
                         struct rd_slice b)
{
    engine_reply_errorf(call->reply,
                        "ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for a single "
                        "client must not overlap.",
                        (int)(a.len < 256 ? a.len : 256), (const char *)a.ptr, what,
                        (int)(b.len < 256 ? b.len : 256), (const char *)b.ptr);
    return false;
}

static bool prefixes_ok(struct dispatch_call *call, const struct request *r)
{
    for (size_t i = 0; i < r->n_prefixes; i++) {
        struct rd_slice prefix = r->prefixes[i];
        for (size_t k = 0; k < tracking_prefix_count(call->c); k++)
            if (overlap(prefix, tracking_prefix(call->c, k)))
                return fail_overlap(call, prefix, "an existing", tracking_prefix(call->c, k));
        for (size_t k = i + 1; k < r->n_prefixes; k++)
            if (overlap(prefix, r->prefixes[k]))
                return fail_overlap(call, prefix, "another provided", r->prefixes[k]);
    }
    return true;
}

static bool options_ok(struct dispatch_call *call, const struct request *r)
{
    unsigned now = tracking_flags(call->c), next = r->options;
    unsigned opt = TRACKING_OPTIN | TRACKING_OPTOUT;
    if ((next & TRACKING_BCAST) == 0 && r->n_prefixes > 0)
        return fail(call, "ERR PREFIX option requires BCAST mode to be enabled");
    if ((now & TRACKING_ON) != 0 && ((now ^ next) & TRACKING_BCAST) != 0)
        return fail(call, "ERR You can't switch BCAST mode on/off before disabling tracking for "
                          "this client, and then re-enabling it with a different mode.");
    if ((next & TRACKING_BCAST) != 0 && (next & opt) != 0)
        return fail(call, "ERR OPTIN and OPTOUT are not compatible with BCAST");
    if ((next & opt) == opt)
        return fail(call, "ERR You can't specify both OPTIN mode and OPTOUT mode");
    if (((next & TRACKING_OPTIN) != 0 && (now & TRACKING_OPTOUT) != 0) ||
        ((next & TRACKING_OPTOUT) != 0 && (now & TRACKING_OPTIN) != 0))
        return fail(call, "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for "
                          "this client, and then re-enabling it with a different mode.");
    return prefixes_ok(call, r);
}

void cmd_client_tracking(struct dispatch_call *call)
{
    struct request r = {.prefixes = engine_scratch_alloc(call->argc * sizeof *r.prefixes)};
    bool on = dispatch_arg_is(call->argv[2], "on");
    bool ok = read_options(call, &r);
    if (ok && !on && !dispatch_arg_is(call->argv[2], "off"))
        ok = fail(call, "ERR syntax error");
    if (ok && on)
        ok = options_ok(call, &r);
    if (ok && on)
        tracking_begin(call->c, r.options, (uint64_t)r.redirect, r.prefixes, r.n_prefixes);
    else if (ok)
        tracking_end(call->c);
    if (ok)
        engine_reply_ok(call->reply);
    engine_scratch_free(r.prefixes);
}

/* ---- the other commands ---- */

void cmd_client_caching(struct dispatch_call *call)
{
    unsigned flags = tracking_flags(call->c);
    bool yes = dispatch_arg_is(call->argv[2], "yes");
    if ((flags & TRACKING_ON) == 0)
        fail(call, "ERR CLIENT CACHING can be called only when the client is in tracking mode with "
                   "OPTIN or OPTOUT mode enabled");
    else if (!yes && !dispatch_arg_is(call->argv[2], "no"))
        dispatch_syntax(call);
    else if (yes && (flags & TRACKING_OPTIN) == 0)
        fail(call, "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    else if (!yes && (flags & TRACKING_OPTOUT) == 0)
        fail(call, "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    else {
        tracking_set_caching(call->c);
        engine_reply_ok(call->reply);
    }
}

static int64_t redirect_of(const struct client *c)
{
    return (tracking_flags(c) & TRACKING_ON) != 0 ? (int64_t)tracking_redirect(c) : -1;
}

void cmd_client_getredir(struct dispatch_call *call)
{
    engine_reply_int(call->reply, redirect_of(call->c));
}

/* CACHING is shown with the mode to which it belongs. */
static unsigned words_of(unsigned flags, const char *words[8])
{
    bool caching = (flags & TRACKING_CACHING) != 0;
    unsigned n = 0;
    words[n++] = (flags & TRACKING_ON) != 0 ? "on" : "off";
    if ((flags & TRACKING_BCAST) != 0)
        words[n++] = "bcast";
    if ((flags & TRACKING_OPTIN) != 0)
        words[n++] = "optin";
    if ((flags & TRACKING_OPTIN) != 0 && caching)
        words[n++] = "caching-yes";
    if ((flags & TRACKING_OPTOUT) != 0)
        words[n++] = "optout";
    if ((flags & TRACKING_OPTOUT) != 0 && caching)
        words[n++] = "caching-no";
    if ((flags & TRACKING_NOLOOP) != 0)
        words[n++] = "noloop";
    if ((flags & TRACKING_BROKEN) != 0)
        words[n++] = "broken_redirect";
    return n;
}

void cmd_client_trackinginfo(struct dispatch_call *call)
{
    const char *words[8];
    unsigned n = words_of(tracking_flags(call->c), words);
    engine_reply_map(call->reply, 3);
    engine_reply_str(call->reply, "flags");
    engine_reply_set(call->reply, n);
    for (unsigned i = 0; i < n; i++)
        engine_reply_str(call->reply, words[i]);
    engine_reply_str(call->reply, "redirect");
    engine_reply_int(call->reply, redirect_of(call->c));
    engine_reply_str(call->reply, "prefixes");
    engine_reply_array(call->reply, tracking_prefix_count(call->c));
    for (size_t i = 0; i < tracking_prefix_count(call->c); i++)
        engine_reply_bulk(call->reply, tracking_prefix(call->c, i));
}
