#!/bin/busybox sh
# The first program of the guest. It obeys a port of the machine: a line
# `ID SECONDS BASE64` is a script, `ID CODE BYTES` and so many bytes are what
# came of it. It ends the machine when nobody listens any more.
export PATH=/bin:/sbin:/usr/bin
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox --install -s /bin 2> /dev/null
mount -t tmpfs run /run
mount -t tmpfs scratch /scratch
hostname guest

for module in virtio_pci virtio_console virtio_net nvme; do
    modprobe "$module" || echo "init: no $module"
done
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
echo 120 > /proc/sys/kernel/hung_task_timeout_secs
mount -t debugfs debug /sys/kernel/debug
echo nqn.2014-08.org.nvmexpress:uuid:5a4f4e45-4c41-4220-8755-455354000001 > /etc/nvme/hostnqn
echo 5a4f4e45-4c41-4220-8755-455354000001 > /etc/nvme/hostid

tries=0
while [ ! -e /dev/vport*p1 ] && [ "$tries" -lt 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
# What every program of the guest, and every task that nothing can wake, waits for, and what
# drives have not answered.
waits() {
    echo "init: a script takes too long; its tasks, and requests that were not answered:"
    for task in /proc/[0-9]*; do
        read -r _ name state _ 2> /dev/null < "$task/stat" || continue
        [ "$state" = D ] || [ -n "$(tr -d '\0' 2> /dev/null < "$task/cmdline")" ] || continue
        echo "$state $name $(tr '\0' ' ' < "$task/cmdline" | head -c 200)"
        sed 's/^/    /' "$task/stack"
    done 2> /dev/null
    grep -H . /sys/kernel/debug/block/*/hctx*/busy /sys/kernel/debug/block/*/hctx*/dispatch
    grep -H . /sys/kernel/debug/block/*/sched/*dispatch /sys/block/*/inflight
}

# Before a script that hangs is ended, the console tells what it waits for: /run/deadline is
# when, in seconds since the start.
NEVER=2147483647
watch() {
    while sleep 5; do
        read -r now _ < /proc/uptime
        read -r deadline < /run/deadline
        [ "${now%.*}" -ge "$deadline" ] || continue
        echo "$NEVER" > /run/deadline
        waits > /dev/console 2>&1
    done
}
echo "$NEVER" > /run/deadline
watch 3>&- &

exec 3<> "$(echo /dev/vport*p1)"
echo "0 0 0" >&3
while read -r id seconds script <&3; do
    echo "$script" | base64 -d > /run/script
    read -r now _ < /proc/uptime
    echo "$((${now%.*} + seconds - 10))" > /run/deadline
    /bin/timeout --kill-after=5 "$seconds" sh /run/script > /run/output 2>&1 < /dev/null 3>&-
    code=$?
    echo "$NEVER" > /run/deadline
    size=$(stat -c %s /run/output)
    echo "$id $code $size" >&3
    head -c "$size" /run/output >&3
done
poweroff -f
