/* SPDX-License-Identifier: MIT */
/*
 * What a FastCGI program costs at the least: answers a constant.  Beside it,
 * `make bench` measures il-fcgi behind the same nginx.  It listens on
 * descriptor 0, as such programs do.
 */
#include <signal.h>
#include <sys/prctl.h>

#include <fcgiapp.h>

static const char answer[] = "Status: 200 OK\r\n"
			     "Content-Type: application/json\r\n"
			     "Content-Length: 10\r\n\r\n"
			     "{\"type\":1}";

int
main(void)
{
	FCGX_Request request;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (FCGX_Init() != 0 || FCGX_InitRequest(&request, 0, 0) != 0)
		return 1;
	while (FCGX_Accept_r(&request) == 0) {
		(void)FCGX_PutStr(answer, (int)sizeof(answer) - 1, request.out);
		FCGX_Finish_r(&request);
	}
	return 0;
}
