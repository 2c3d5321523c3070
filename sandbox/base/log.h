/* SPDX-License-Identifier: MIT */
#ifndef LOG_H
#define LOG_H

/*
 * Log lines go to standard error as `<N>program: text key=value …`, where <N>
 * is the syslog priority that the journal understands.  errno is kept.  Bytes
 * below 0x20, 0x7f and bytes over 0x7f that are not valid UTF-8 are written as
 * \xNN, lines are cut at 1,000 bytes.  Never log tokens, signatures, message
 * bodies or source code.  Keys: job, interaction, user, sandbox, cell, ms.
 */
enum log_level { /* numbered as by syslog(3) */
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARN = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* program: kept, not copied.  level: the most talkative one to write. */
void log_init(const char *program, enum log_level level);

void log_at(enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#define log_err(...) log_at(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Log at LOG_LEVEL_ERR and exit: 64 usage, 78 configuration, 1 other. */
void log_fatal(int exit_code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

#endif
