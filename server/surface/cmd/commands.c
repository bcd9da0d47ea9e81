#include "server/surface/cmd/commands.h"

static const struct dispatch_row rows[] = {
#define X(path, name) {path, server_cmd_##name},
    SERVER_COMMANDS(X)
#undef X
};

void commands_register(struct sessions *sessions)
{
    dispatch_register(sessions, rows, sizeof rows / sizeof *rows);
}
