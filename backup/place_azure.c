#include "backup/place_azure.h"

#include "archive/http.h"
#include "archive/store_azure.h"
#include "backup/system.h"

#include <stdio.h>

enum { SECRET_MAX = 4096, NAME_MAX_LEN = 64 };

/* The first line of the file: a key, or a SAS with or without its question mark. */
static const char *read_line(const char *path, struct rd_buf *text, struct rd_err *err)
{
    if (!backup_read_file(path, SECRET_MAX, text, err))
        return NULL;
    if (!rd_buf_add_byte(text, '\0')) {
        rd_err_nomem(err, text->len);
        return NULL;
    }
    char *line = (char *)text->ptr;
    line[strcspn(line, " \t\r\n")] = '\0';
    line += line[0] == '?';
    if (line[0] != '\0')
        return line;
    rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET, "its first line is empty");
    rd_err_origin(err, path);
    return NULL;
}

static bool find_secret(struct archive_azure_opts *opts, const struct backup_target *target,
                        struct rd_buf *text, struct rd_err *err)
{
    const char *key = backup_get(target, BACKUP_KEY_AZURE_KEY_FILE);
    const char *sas = backup_get(target, BACKUP_KEY_AZURE_SAS_FILE);
    if (sas != NULL)
        return (opts->sas = read_line(sas, text, err)) != NULL;
    if (key != NULL)
        return (opts->key = read_line(key, text, err)) != NULL;
    opts->key = backup_env("AZURE_STORAGE_KEY");
    return opts->key != NULL ||
           rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                      "no key: azure-key-file, azure-sas-file, or AZURE_STORAGE_KEY");
}

/* A component of the URL; *where is moved past it and its slash. */
static bool take(const char **where, char ret[NAME_MAX_LEN])
{
    size_t len = strcspn(*where, "/");
    snprintf(ret, NAME_MAX_LEN, "%.*s", (int)len, *where);
    *where += len + ((*where)[len] == '/');
    return len > 0 && len < NAME_MAX_LEN;
}

bool backup_open_azure(struct archive_store **ret, const struct backup_target *target,
                       const char *where, uint64_t rate, const atomic_bool *cancel,
                       struct rd_err *err)
{
    char account[NAME_MAX_LEN], container[NAME_MAX_LEN], endpoint[128];
    const char *place = backup_get(target, BACKUP_KEY_AZURE_ENDPOINT);
    const char *rest = where + strlen("azure://");
    struct rd_buf text = {0};
    if (!archive_http_built("repositories in Azure", err))
        return false;
    if (!take(&rest, account) || !take(&rest, container) || where[strlen(where) - 1] == '/' ||
        strchr(where, '?') != NULL)
        return rd_err_set(err, RD_ERR_USAGE, RD_NO_OFFSET,
                          "a container must be azure://ACCOUNT/CONTAINER/PREFIX");
    snprintf(endpoint, sizeof endpoint, "https://%s.blob.core.windows.net", account);
    struct archive_azure_opts opts = {.endpoint = place != NULL ? place : endpoint,
                                      .account = account,
                                      .container = container,
                                      .prefix = rest[0] != '\0' ? rest : NULL,
                                      .ca_file = backup_get(target, BACKUP_KEY_CA_FILE),
                                      .now_ms = backup_now_ms,
                                      .tries = cancel != NULL,
                                      .wait_ms = backup_wait_ms,
                                      .rate = rate,
                                      .cancel = cancel};
    bool ok = backup_random(&opts.upload, sizeof opts.upload, err) &&
              find_secret(&opts, target, &text, err) && archive_store_open_azure(ret, &opts, err);
    if (text.len > 0)
        explicit_bzero(text.ptr, text.len);
    rd_buf_done(&text);
    return ok;
}
