/*
 * One program beside others, for Corosync: a sender or a receiver of a closed process group.
 *
 * In:        its task as arguments: role, name, number, senders, receivers, size, seconds, rate, quiet; a line on
 *            standard input when all are ready.
 * Out:       "ready" and then its result, each one JSON line on standard output, as program.py says them.
 * Messages:  those of content.py, but numbers never return: eight bytes of sender and number, eight of a stamp (zero
 *            without a rate), filler. A sender's last message has the end bit, and the count of those before.
 * Checks:    those of audit.py: every message is the next of its sender, whole, and nothing comes after an end. With the
 *            role `audit` it checks what comes on standard input.
 *
 * Who sends to a closed group is a member, and gets everything too: senders read, and throw away.
 */

#include <corosync/cpg.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SENDERS_MAX 128
#define END_BIT (1ULL << 55)
#define NUMBER_MASK (END_BIT - 1)
#define STAMPED_BYTES 16

static const char *name;
static int is_sender, number, senders, receivers;
static size_t size;
static double seconds, rate, quiet;

static cpg_handle_t handle;
static int receivers_here, open_senders;
static uint64_t next_number[SENDERS_MAX], received, order = 14695981039346656037ULL;
static int has_ended[SENDERS_MAX];
static int64_t first_ns, last_ns;
static double busy;
static char problem[200];
static char *filler;
static uint32_t *latencies_us;
static size_t latencies, latencies_room;

static int64_t clock_ns(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double cpu_s(void) { return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9; }

static void say_result(uint64_t messages, double lasted, double cpu) {
    printf("{\"name\":\"%s\",\"messages\":%llu,\"seconds\":%.9f,\"cpu_seconds\":%.9f,\"order\":\"%016llx\","
           "\"problem\":\"%s\",\"latencies_us\":[",
           name, (unsigned long long)messages, lasted, cpu, (unsigned long long)order, problem);
    for (size_t at = 0; at < latencies; at++)
        printf(at ? ",%u" : "%u", latencies_us[at]);
    puts("]}");
    fflush(stdout);
}

static void fail(const char *text, uint64_t which, unsigned sender, uint64_t expected) {
    if (!problem[0])
        snprintf(problem, sizeof problem, text, (unsigned long long)which, sender, (unsigned long long)expected);
}

static void quit(const char *what, int error) {
    snprintf(problem, sizeof problem, "%s: error %d of libcpg", what, error);
    say_result(0, 0, 0);
    exit(0);
}

/* --- what comes */

static void note_latency(int64_t now_ns, const char *payload) {
    int64_t stamp;
    memcpy(&stamp, payload + 8, 8);
    if (latencies == latencies_room) {
        latencies_room = latencies_room ? 2 * latencies_room : 65536;
        latencies_us = realloc(latencies_us, latencies_room * sizeof *latencies_us);
        if (!latencies_us)
            abort();
    }
    latencies_us[latencies++] = (uint32_t)((now_ns - stamp) / 1000);
}

static void on_end(unsigned sender, uint64_t total) {
    uint64_t came = next_number[sender] - 1;
    if (total != came)
        fail("sender %2$u has sent %1$llu messages, %3$llu came", total, sender, came);
    has_ended[sender] = 1;
    open_senders--;
    last_ns = clock_ns(CLOCK_MONOTONIC);
}

static void take(const char *payload, size_t length) {
    uint64_t head = 0;
    int64_t now_ns = rate > 0 || !first_ns ? clock_ns(CLOCK_MONOTONIC) : 0;
    if (!first_ns) {
        first_ns = now_ns;
        busy = cpu_s();
    }
    if (length >= STAMPED_BYTES)
        memcpy(&head, payload, 8);
    unsigned sender = (unsigned)(head >> 56);
    if (length < STAMPED_BYTES || sender >= (unsigned)senders)
        fail("a message came that no sender has sent (%llu of %u after %llu)", head & NUMBER_MASK, sender, received);
    else if (length != size || memcmp(payload + STAMPED_BYTES, filler, size - STAMPED_BYTES))
        fail("message %llu of sender %u does not hold what was sent (after %llu)", head & NUMBER_MASK, sender, received);
    else if (has_ended[sender])
        fail("message %llu of sender %u came after its end (%llu)", head & NUMBER_MASK, sender, next_number[sender] - 1);
    else if (head & END_BIT)
        on_end(sender, head & NUMBER_MASK);
    else if ((head & NUMBER_MASK) != next_number[sender])
        fail("message %llu of sender %u came instead of %llu", head & NUMBER_MASK, sender, next_number[sender]);
    else {
        next_number[sender]++;
        received++;
        order = (order ^ sender) * 1099511628211ULL;
        if (rate > 0)
            note_latency(now_ns, payload);
    }
}

static void on_message(cpg_handle_t h, const struct cpg_name *group, uint32_t node, uint32_t pid, void *payload,
                       size_t length) {
    (void)h, (void)group, (void)node, (void)pid;
    if (!is_sender)
        take(payload, length);
}

static void on_members(cpg_handle_t h, const struct cpg_name *group, const struct cpg_address *members, size_t count,
                       const struct cpg_address *left, size_t left_count, const struct cpg_address *joined,
                       size_t joined_count) {
    (void)h, (void)group, (void)members, (void)left, (void)left_count, (void)joined, (void)joined_count;
    receivers_here = count >= (size_t)receivers;
}

/* --- both roles */

static void join(void) {
    cpg_callbacks_t callbacks = {.cpg_deliver_fn = on_message, .cpg_confchg_fn = on_members};
    struct cpg_name group = {.length = 7, .value = "traffic"};
    cs_error_t error = cpg_initialize(&handle, &callbacks);
    if (error != CS_OK)
        quit("cpg_initialize", error);
    while ((error = cpg_join(handle, &group)) == CS_ERR_TRY_AGAIN)
        usleep(10000);
    if (error != CS_OK)
        quit("cpg_join", error);
}

/* Whether something was there within this time; less than none is as long as it takes. */
static int dispatch(int wait_ms, int everything) {
    int descriptor;
    cpg_fd_get(handle, &descriptor);
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    if (poll(&wanted, 1, wait_ms) <= 0)
        return 0;
    cs_error_t error = cpg_dispatch(handle, everything ? CS_DISPATCH_ALL : CS_DISPATCH_ONE_NONBLOCKING);
    if (error != CS_OK && error != CS_ERR_TRY_AGAIN)
        quit("cpg_dispatch", error);
    return 1;
}

static void wait_for_word(void) {
    struct pollfd inputs[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
    char word[64];
    cpg_fd_get(handle, &inputs[1].fd);
    while (poll(inputs, 2, -1) >= 0 && !inputs[0].revents)
        dispatch(0, 1);
    if (read(STDIN_FILENO, word, sizeof word) <= 0)
        exit(0);
}

static void say_ready(void) {
    puts("\"ready\"");
    fflush(stdout);
}

/* --- sending */

static void send_one(char *payload, uint64_t head, int64_t stamp) {
    struct iovec part = {.iov_base = payload, .iov_len = size};
    cs_error_t error;
    memcpy(payload, &head, 8);
    memcpy(payload + 8, &stamp, 8);
    while ((error = cpg_mcast_joined(handle, CPG_TYPE_AGREED, &part, 1)) == CS_ERR_TRY_AGAIN)
        dispatch(1, 1); /* There is no room: what comes back makes some. */
    if (error != CS_OK)
        quit("cpg_mcast_joined", error);
}

static void sleep_until(int64_t due_ns) {
    struct timespec due = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

static void send_all(void) {
    char *payload = malloc(size);
    uint64_t mine = (uint64_t)number << 56, sent = 0;
    memset(payload, '.', size);
    say_ready();
    wait_for_word();
    double started_busy = cpu_s();
    int64_t start = clock_ns(CLOCK_MONOTONIC), now, end = start + (int64_t)(seconds * 1e9);
    while ((now = clock_ns(CLOCK_MONOTONIC)) < end) {
        int64_t due = rate > 0 ? start + (int64_t)((double)sent * 1e9 / rate) : now;
        if (now < due)
            sleep_until(due);
        send_one(payload, mine | (sent + 1), rate > 0 ? clock_ns(CLOCK_MONOTONIC) : 0);
        sent++;
        if (rate > 0 || sent % 16 == 0)
            dispatch(0, 1);
    }
    send_one(payload, mine | END_BIT | sent, 0);
    say_result(sent, (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e9, cpu_s() - started_busy);
    wait_for_word();
}

/* --- receiving */

static void expect_senders(void) {
    open_senders = senders;
    for (int at = 0; at < senders; at++)
        next_number[at] = 1;
}

static void receive_all(void) {
    expect_senders();
    while (!receivers_here)
        dispatch(-1, 1);
    say_ready();
    while (open_senders && !problem[0])
        dispatch(-1, 1);
    while (!problem[0] && dispatch((int)(quiet * 1000), 1))
        ;
    say_result(received, (double)(last_ns - first_ns) / 1e9, cpu_s() - busy);
    wait_for_word();
}

/* Messages from standard input, each after its length: so a test can plant what no network does at will. */
static void audit_input(void) {
    uint32_t length;
    char *payload = malloc(2 * size);
    expect_senders();
    while (fread(&length, sizeof length, 1, stdin) == 1 && length <= 2 * size &&
           fread(payload, 1, length, stdin) == length)
        take(payload, length);
    say_result(received, (double)(last_ns - first_ns) / 1e9, cpu_s() - busy);
}

int main(int count, char **words) {
    if (count != 10)
        return 2;
    is_sender = strcmp(words[1], "send") == 0;
    name = words[2];
    number = atoi(words[3]);
    senders = atoi(words[4]);
    receivers = atoi(words[5]);
    size = strtoul(words[6], NULL, 10);
    seconds = atof(words[7]);
    rate = atof(words[8]);
    quiet = atof(words[9]);
    if (senders > SENDERS_MAX || size < STAMPED_BYTES)
        return 2;
    filler = malloc(size);
    memset(filler, '.', size);
    if (strcmp(words[1], "audit") == 0) {
        audit_input();
        return 0;
    }
    join();
    if (is_sender)
        send_all();
    else
        receive_all();
    return 0;
}
