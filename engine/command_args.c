#include "engine/command_args.h"

struct parser {
    const char *at;
    struct engine_arg *args;
    size_t n;
    unsigned depth;
};

static bool list(struct parser *p, size_t *ret_n, bool *ret_oneof);

static const char *const type_names[ENGINE_ARG_TYPE_COUNT] = {
#define X(name, word) word,
    ENGINE_ARG_TYPES(X)
#undef X
};

const char *engine_arg_type_name(enum engine_arg_type type)
{
    return type < ENGINE_ARG_TYPE_COUNT ? type_names[type] : NULL;
}

static bool accept(struct parser *p, char c)
{
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool accept_text(struct parser *p, const char *text)
{
    size_t len = strlen(text);
    if (strncmp(p->at, text, len) != 0)
        return false;
    p->at += len;
    return true;
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_name(char c)
{
    return is_small(c) || is_capital(c) || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_-/", c));
}

static struct rd_slice until(struct parser *p, char end)
{
    const char *from = p->at;
    while (*p->at != '\0' && *p->at != end)
        p->at++;
    return rd_slice(from, (size_t)(p->at - from));
}

/* A word, with or without quotes; *ret_token: users type it. */
static bool word(struct parser *p, struct rd_slice *ret, bool *ret_token)
{
    if (accept(p, '\'')) {
        *ret = until(p, '\'');
        if (!accept(p, '\''))
            return false;
        *ret_token = *p->at == '=';
        return true;
    }
    const char *from = p->at;
    *ret_token = is_capital(*from);
    while (is_name(*p->at))
        p->at++;
    *ret = rd_slice(from, (size_t)(p->at - from));
    return ret->len > 0;
}

static bool type_and_spec(struct parser *p, struct engine_arg *arg)
{
    arg->type = ENGINE_ARG_STRING;
    bool typed = accept(p, ':');
    if (typed) {
        const char *from = p->at;
        while (is_small(*p->at) || *p->at == '-')
            p->at++;
        struct rd_slice name = rd_slice(from, (size_t)(p->at - from));
        while (arg->type < ENGINE_ARG_TYPE_COUNT && !rd_slice_is(name, type_names[arg->type]))
            arg->type++;
        if (arg->type >= ENGINE_ARG_KEY)
            return false;
    }
    if (!accept(p, '@'))
        return true;
    if (*p->at < '0' || *p->at > '9')
        return false;
    if (!typed)
        arg->type = ENGINE_ARG_KEY;
    arg->key_spec = *p->at++ - '0';
    return true;
}

/* The part after a name: its children, or its type. */
static bool content(struct parser *p, struct engine_arg *arg)
{
    bool oneof;
    if (!accept(p, '('))
        return type_and_spec(p, arg);
    if (!list(p, &arg->n_args, &oneof))
        return false;
    arg->type = oneof ? ENGINE_ARG_ONEOF : ENGINE_ARG_BLOCK;
    return accept(p, ')');
}

static bool core(struct parser *p, struct engine_arg *arg)
{
    bool is_token;
    if (!word(p, &arg->name, &is_token))
        return false;
    if (!is_token)
        return content(p, arg);
    arg->has_token = true;
    arg->token = arg->name;
    if (p->at[0] == ' ' && (is_small(p->at[1]) || p->at[1] == '\'')) {
        p->at++;
        return word(p, &arg->name, &is_token) && !is_token && content(p, arg);
    }
    arg->type = ENGINE_ARG_PURE_TOKEN;
    arg->lower_name = !accept(p, '=');
    return arg->lower_name || (word(p, &arg->name, &is_token) && !is_token);
}

static bool item(struct parser *p, struct engine_arg *arg)
{
    arg->optional = accept(p, '[');
    if (!core(p, arg))
        return false;
    arg->multiple = accept_text(p, "...");
    arg->multiple_token = arg->multiple && accept(p, '+');
    while (accept(p, '{')) {
        struct rd_slice *version = accept_text(p, "until ") ? &arg->deprecated_since : &arg->since;
        *version = until(p, '}');
        if (!accept(p, '}'))
            return false;
    }
    return !arg->optional || accept(p, ']');
}

/* True: another one follows. */
static bool separator(struct parser *p, bool *oneof)
{
    if (accept_text(p, " | ")) {
        *oneof = true;
        return true;
    }
    return accept_text(p, ", ") || accept(p, ' ');
}

static bool list(struct parser *p, size_t *ret_n, bool *ret_oneof)
{
    struct engine_arg *before = NULL;
    *ret_n = 0;
    *ret_oneof = false;
    if (++p->depth > ENGINE_ARGS_DEPTH)
        return false;
    do {
        if (p->n == ENGINE_ARGS_MAX)
            return false;
        if (before != NULL)
            before->next = p->n;
        before = &p->args[p->n++];
        *before = (struct engine_arg){.key_spec = -1};
        if (!item(p, before))
            return false;
        (*ret_n)++;
    } while (separator(p, ret_oneof));
    p->depth--;
    return true;
}

bool engine_args_parse(const char *text, struct engine_arg args[ENGINE_ARGS_MAX], size_t *ret_n)
{
    struct parser p = {.at = text, .args = args};
    bool oneof;
    return list(&p, ret_n, &oneof) && !oneof && *p.at == '\0';
}
