#!/bin/sh
# Derives the keys of psk.txt with OpenSSL 3: psk.sh > psk.txt
# Those of other names: psk.sh HOSTNQN SUBNQN
set -eu
host=${1:-nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff}
sub=${2:-nqn.2024-01.io.github.zonelab:test}

hex() { od -An -v -tx1 | tr -d ' \n'; }

# label HASH BYTES KEY LABEL CONTEXT: HKDF without salt, info as of HKDF-Expand-Label
label() {
    info=$(printf '%04x%02x' "$2" $((6 + ${#4})))$(printf 'tls13 %s' "$4" | hex)
    info=$info$(printf '%02x' ${#5})$(printf '%s' "$5" | hex)
    openssl kdf -binary -keylen "$2" -kdfopt "digest:$1" -kdfopt "hexkey:$3" \
        -kdfopt "hexsalt:$(printf "%0$((2 * $2))d" 0)" -kdfopt "hexinfo:$info" HKDF | hex
}

# keys HASH NUMBER BYTES KEY TEXT...
keys() {
    hash=$1 number=$2 bytes=$3 key=$4
    shift 4
    for text; do
        case $text in
        NVMeTLSkey-1:00:*) retained=$key ;;
        *) retained=$(label "$hash" "$bytes" "$key" HostNQN "$host") ;;
        esac
        v0=$(label "$hash" "$bytes" "$retained" nvme-tls-psk "NVMe0R$number $host $sub")
        digest=$(printf '%s' "$host $sub NVMe-over-Fabrics" |
            openssl mac -binary -digest "$hash" -macopt "hexkey:$retained" HMAC | base64 -w0)
        v1=$(label "$hash" "$bytes" "$retained" nvme-tls-psk "$number $digest")
        echo "$text $retained $v0 $digest $v1"
    done
}

echo '# configured key, retained key, key of NVMe0R, digest, key of NVMe1R'
short=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR
long=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==
key=$(printf "$short" | base64 -d | head -c32 | hex)
keys SHA256 01 32 "$key" "NVMeTLSkey-1:00:$short:" "NVMeTLSkey-1:01:$short:"
key=$(printf "$long" | base64 -d | head -c48 | hex)
keys SHA384 02 48 "$key" "NVMeTLSkey-1:00:$long:" "NVMeTLSkey-1:02:$long:"
