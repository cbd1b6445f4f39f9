"""Small whole programs. Start a cluster with `covey up`, then run each of them with `python -m examples.NAME`.

    chat            people in a room
    leader          one of many leads, and nobody votes
    kv_store        a table that every member holds, through partitions and merges
    work_queue      jobs that survive the workers who take them
    sensors         many readings, and dashboards that cannot keep up

Two modules are shared: `terminal` (lines from the keyboard) and `replica` (state that members have in common).
"""
