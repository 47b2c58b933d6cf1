/* A paced server of canned chat streams: every event's text is the monotonic clock, in nanoseconds, just before its write.

   POST /live/EVENTS/PER_SECOND/...           EVENTS events, PER_SECOND a second, each written by itself
   POST /live/EVENTS/PER_SECOND/HEARTBEAT/... 6 ms after each event bytes that belong to none: `comments` have a comment,
                                              `names` the `event:` line of the next one, `ends` the end of the chunk
   The first line of output is the address, as JSON; it ends when its input does. Linux only. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define STREAMS 1024
#define REQUEST_BYTES 16384
#define HEARTBEAT_NS 6000000

struct stream {
    int fd;
    size_t received;
    char request[REQUEST_BYTES];
    long left;       /* events still to be written; -1 while there is no request */
    int64_t due_ns;
    int64_t gap_ns;
    const char *heartbeat; /* written after each event; NULL for nothing */
    int awaits_heartbeat;
};

static const char COMMENT[] = "8\r\n: wait\n\n\r\n", NAME[] = "d\r\nevent: chunk\n\r\n", CHUNK_END[] = "\r\n";

static struct stream *streams[STREAMS];

static const char HEAD[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
static const char EVENT[] =
    "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"fam-mini\","
    "\"choices\":[{\"index\":0,\"delta\":%s,\"logprobs\":null,\"finish_reason\":%s}]}\n\n";

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* One write; a client that does not read for so long that it would not fit ends its stream. */
static int write_all(struct stream *s, const char *data, size_t size) {
    return send(s->fd, data, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

static int write_chunk(struct stream *s, const char *delta, const char *finish, const char *end) {
    char event[512], chunk[600];
    int size = snprintf(event, sizeof event, EVENT, delta, finish);
    return write_all(s, chunk, snprintf(chunk, sizeof chunk, "%x\r\n%s%s", size, event, end));
}

static int write_clock(struct stream *s) {
    char delta[64];
    snprintf(delta, sizeof delta, "{\"content\":\"%019lld\"}", (long long)now_ns());
    return write_chunk(s, delta, "null", s->heartbeat == CHUNK_END ? "" : CHUNK_END);
}

static int write_end(struct stream *s) {
    static const char end[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
    return write_chunk(s, "{}", "\"stop\"", CHUNK_END) || write_all(s, end, sizeof end - 1) ? -1 : 0;
}

static void forget(int slot) {
    close(streams[slot]->fd);
    free(streams[slot]);
    streams[slot] = NULL;
}

/* Begins to answer once a whole request is there. */
static int read_request(struct stream *s) {
    ssize_t size = recv(s->fd, s->request + s->received, REQUEST_BYTES - 1 - s->received, 0);
    if (size <= 0)
        return -1;
    s->received += size;
    s->request[s->received] = 0;
    char *body = strstr(s->request, "\r\n\r\n"), *length = strcasestr(s->request, "content-length:");
    if (!body || s->request + s->received < body + 4 + (length ? atol(length + 15) : 0))
        return 0;
    long events = 0;
    double per_second = 0;
    char kind[16] = "";
    if (sscanf(s->request, "POST /live/%ld/%lf/%15[a-z]", &events, &per_second, kind) < 2 || per_second <= 0)
        return -1;
    s->heartbeat = !strcmp(kind, "comments") ? COMMENT : !strcmp(kind, "names") ? NAME : !strcmp(kind, "ends") ? CHUNK_END : NULL;
    s->received = 0;
    s->left = events;
    s->gap_ns = 1e9 / per_second;
    /* Spread: streams that begin together would else write together for ever. */
    s->due_ns = now_ns() + s->gap_ns + s->fd * 7919 % 997 * s->gap_ns / 997;
    return write_all(s, HEAD, sizeof HEAD - 1) || write_chunk(s, "{\"role\":\"assistant\",\"content\":\"\"}", "null", CHUNK_END) ? -1 : 0;
}

static int tick(struct stream *s) {
    if (s->awaits_heartbeat) {
        s->awaits_heartbeat = 0;
        s->due_ns += s->gap_ns - HEARTBEAT_NS;
        return write_all(s, s->heartbeat, strlen(s->heartbeat));
    }
    if (s->left == 0) {
        s->left = -1;
        return write_end(s);
    }
    s->left--;
    s->awaits_heartbeat = s->heartbeat != NULL;
    s->due_ns += s->heartbeat ? HEARTBEAT_NS : s->gap_ns;
    return write_clock(s);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, STREAMS) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        return perror("listen"), 1;
    int epoll = epoll_create1(0);
    enum { LISTENER = STREAMS, TIMER, INPUT };
    int fds[] = {listener, timer, STDIN_FILENO};
    for (int i = 0; i < 3; i++) {
        struct epoll_event interest = {.events = EPOLLIN, .data.u32 = LISTENER + i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &interest);
    }
    printf("\"http://127.0.0.1:%d\"\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int64_t next_ns = INT64_MAX;
        for (int slot = 0; slot < STREAMS; slot++) {
            while (streams[slot] && streams[slot]->left >= 0 && streams[slot]->due_ns <= now_ns())
                if (tick(streams[slot]))
                    forget(slot);
            if (streams[slot] && streams[slot]->left >= 0 && streams[slot]->due_ns < next_ns)
                next_ns = streams[slot]->due_ns;
        }
        struct itimerspec alarm = {0};
        if (next_ns != INT64_MAX)
            alarm.it_value = (struct timespec){next_ns / 1000000000, next_ns % 1000000000};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &alarm, NULL);
        struct epoll_event ready[64];
        int count = epoll_wait(epoll, ready, 64, -1);
        for (int i = 0; i < count; i++) {
            unsigned slot = ready[i].data.u32;
            uint64_t expirations;
            if (slot == INPUT && read(STDIN_FILENO, &expirations, sizeof expirations) <= 0)
                return 0;
            if (slot == TIMER && read(timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN)
                return perror("timer"), 1;
            if (slot < STREAMS && streams[slot] && read_request(streams[slot]))
                forget(slot);
            if (slot != LISTENER)
                continue;
            int fd = accept(listener, NULL, NULL), on = 1, place = 0;
            while (place < STREAMS && streams[place])
                place++;
            if (fd < 0 || place == STREAMS || !(streams[place] = calloc(1, sizeof **streams))) {
                close(fd);
                continue;
            }
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            streams[place]->fd = fd;
            streams[place]->left = -1;
            struct epoll_event interest = {.events = EPOLLIN, .data.u32 = place};
            epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &interest);
        }
    }
}
