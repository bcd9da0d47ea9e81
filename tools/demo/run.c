/* run.c - runs a tool in a child process, as if it had been typed. */
#include "tools/demo/demo.h"

#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 20, COMMAND_MAX = 200 };

_Noreturn static void run_child(const char *command, int out)
{
    char line[COMMAND_MAX], program[] = "redoubt", *rest = line;
    char *argv[WORDS_MAX] = {program};
    int argc = 1;
    snprintf(line, sizeof line, "%s", command);
    while (argc < WORDS_MAX - 1 && (argv[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    if (out >= 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
    exit(tools_main(argc, argv));
}

static bool read_output(int fd, struct rd_buf *ret, struct rd_err *err)
{
    uint8_t bytes[4096];
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno != EINTR)
            return rd_err_sys(err, errno, "cannot read the output of a tool");
        if (n > 0 && !rd_buf_add(ret, bytes, (size_t)n))
            return rd_err_nomem(err, (size_t)n);
    }
    return true;
}

static bool wait_child(pid_t pid, int *ret_status, struct rd_err *err)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return rd_err_sys(err, errno, "cannot wait for a tool");
    }
    if (WIFSIGNALED(status))
        return rd_err_set(err, RD_ERR_IO, RD_NO_OFFSET, "a tool was ended by signal %d",
                          WTERMSIG(status));
    *ret_status = WEXITSTATUS(status);
    return true;
}

bool demo_run(const char *command, struct rd_buf *output, int *ret_status, struct rd_err *err)
{
    int pipes[2] = {-1, -1};
    if (output != NULL && pipe2(pipes, O_CLOEXEC) != 0)
        return rd_err_sys(err, errno, "cannot make a pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_child(command, pipes[1]);
    bool ok = pid > 0 || rd_err_sys(err, errno, "cannot start a process");
    if (output != NULL) {
        close(pipes[1]);
        ok = ok && read_output(pipes[0], output, err);
        close(pipes[0]);
    }
    if (pid > 0)
        ok = wait_child(pid, ret_status, err) && ok;
    return ok;
}
