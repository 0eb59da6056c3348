"""Who we connect to: keys checked by name, one shared connection, bastions, and refusals that teach."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from bot.errors import HostError, HostKeyMismatch, HostUnreachable
from bot.ssh.inventory import Host
from bot.ssh.pool import Pool
from bot.ssh.remote import Remote
from tests.fakes.ssh import Sshd, free_port, pair, public, sshd_path
from tests.ssh.conftest import need


async def test_a_wrong_key_blocks_the_host_and_names_both(host: Host, remote: Remote, tmp_path: Path) -> None:
    other = pair(tmp_path / "other")
    known = tmp_path / "known"
    known.write_text(f"{host.name} {public(other)}\n")
    wrong = replace(host, known_hosts=known)
    real = await remote.fingerprint(host)
    for _ in range(2):
        with pytest.raises(HostKeyMismatch) as refusal:
            await remote.run(wrong, "echo never", limit_s=5)
        assert other.get_fingerprint() in str(refusal.value)
        assert f"hosts trust {host.name} --fingerprint {real}" in str(refusal.value)
    await remote.trust(wrong, real)
    assert (await remote.run(wrong, "echo trusted", limit_s=5)).stdout == "trusted\n"


async def test_an_unknown_key_is_refused_with_how_to_trust_it(
    host: Host, remote: Remote, tmp_path: Path
) -> None:
    for known in (tmp_path / "absent", tmp_path / "empty"):
        if known.name == "empty":
            known.touch()
        with pytest.raises(HostKeyMismatch, match=r"is not in .*hosts trust"):
            await remote.run(replace(host, known_hosts=known), "echo never", limit_s=5)


async def test_another_kind_of_key_is_a_changed_key(host: Host, remote: Remote, tmp_path: Path) -> None:
    old = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    (tmp_path / "known").write_text(f"{host.name} {public(old)}\n")
    with pytest.raises(HostKeyMismatch, match="has changed") as refusal:
        await remote.run(replace(host, known_hosts=tmp_path / "known"), "echo never", limit_s=5)
    assert old.get_fingerprint() in str(refusal.value)
    assert await remote.fingerprint(host) in str(refusal.value)


async def test_trust_refuses_another_fingerprint_and_writes_nothing(
    host: Host, remote: Remote, tmp_path: Path
) -> None:
    known = tmp_path / "known"
    with pytest.raises(HostKeyMismatch, match="nothing was written"):
        await remote.trust(replace(host, known_hosts=known), "SHA256:nonsense")
    assert not known.exists()


async def test_trust_leaves_other_lines_alone(host: Host, remote: Remote, tmp_path: Path) -> None:
    known, other = tmp_path / "known", public(pair(tmp_path / "other"))
    known.write_text(f"# note\n@cert-authority *.x {other}\nweb-9,{host.name} {other}\n{host.name} {other}\n")
    await remote.trust(replace(host, known_hosts=known), await remote.fingerprint(host))
    lines = known.read_text().splitlines()
    assert lines[:3] == ["# note", f"@cert-authority *.x {other}", f"web-9 {other}"]
    assert len(lines) == 4
    assert lines[3].startswith(f"{host.name} ssh-ed25519 ")


async def test_a_refused_log_in_says_user_and_identity(host: Host, remote: Remote, tmp_path: Path) -> None:
    pair(tmp_path / "stranger")
    with pytest.raises(HostUnreachable) as refusal:
        await remote.run(replace(host, identity=(tmp_path / "stranger",)), "echo never", limit_s=5)
    assert str(tmp_path / "stranger") in str(refusal.value)
    assert f"~{host.user}/.ssh/authorized_keys" in str(refusal.value)


async def test_of_two_identities_one_is_enough(host: Host, remote: Remote, tmp_path: Path) -> None:
    pair(tmp_path / "new")
    both = replace(host, identity=(tmp_path / "new", *host.identity))
    assert (await remote.run(both, "echo in", limit_s=5)).stdout == "in\n"


async def test_nobody_there_is_said_with_name_and_address(host: Host, remote: Remote) -> None:
    port = free_port()
    with pytest.raises(HostUnreachable, match=rf"{host.name} \(.*127.0.0.1:{port}\) cannot be reached"):
        await remote.run(replace(host, port=port), "echo never", limit_s=5)


async def test_a_server_that_never_answers_is_given_up(host: Host) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    remote = Remote(pool=Pool(connect_s=0.5))
    with pytest.raises(HostUnreachable, match="did not answer in time"):
        await remote.run(replace(host, port=server.sockets[0].getsockname()[1]), "true", limit_s=5)
    await remote.close()
    server.close()


async def test_one_connection_serves_all_commands(host: Host, remote: Remote) -> None:
    outcomes = await asyncio.gather(
        *(remote.run(host, "cat /proc/sys/kernel/random/boot_id", limit_s=9) for _ in range(5))
    )
    assert len({outcome.stdout for outcome in outcomes}) == 1
    assert len(remote._pool._links) == 1


@pytest.mark.sshd
async def test_a_jump_host_is_shared_and_both_keys_are_checked_by_name(
    sshd: Sshd, remote: Remote, tmp_path: Path
) -> None:
    bastion = sshd.host(name="bastion")
    web = [
        sshd.host(name=name, address="localhost", jump="bastion", via=bastion) for name in ("web-1", "web-1")
    ]
    assert (await remote.run(web[0], "echo through", limit_s=9)).stdout == "through\n"
    assert {link.host.name for link in remote._pool._links.values()} == {"bastion", "web-1"}
    stranger = replace(bastion, known_hosts=tmp_path / "nobody")
    with pytest.raises(HostKeyMismatch, match="the key of bastion"):
        await remote.run(replace(web[0], via=stranger), "echo never", limit_s=9)
    with pytest.raises(HostUnreachable, match="which is not in the inventory"):
        await remote.run(replace(web[0], via=None), "echo never", limit_s=9)


@pytest.mark.sshd
async def test_a_host_certificate_is_enough_for_the_name_it_was_made_for(
    tmp_path: Path, remote: Remote
) -> None:
    need(sshd_path(), "sshd")
    authority = pair(tmp_path / "ca")
    server = Sshd(tmp_path, more=f"HostCertificate {tmp_path}/host-cert.pub\n")
    certificate = authority.generate_host_certificate(server.host_key, "web-1", principals=["web-1"])
    certificate.write_certificate(str(tmp_path / "host-cert.pub"))
    server.known_hosts.write_text(f"@cert-authority web-* {public(authority)}\n")
    server.start()
    try:
        assert (await remote.run(server.host(), "echo signed", limit_s=9)).stdout == "signed\n"
        with pytest.raises(HostKeyMismatch):
            await remote.run(server.host(name="web-2"), "echo never", limit_s=9)
    finally:
        await remote.close()
        server.stop()


@pytest.mark.sshd
async def test_a_server_with_fewer_sessions_than_we_use_is_waited_for(tmp_path: Path, remote: Remote) -> None:
    need(sshd_path(), "sshd")
    server = Sshd(tmp_path, more="MaxSessions 2\n")
    server.start()
    try:
        runs = [remote.run(server.host(), f"sleep .1; echo {n}", limit_s=9) for n in range(12)]
        assert [outcome.stdout for outcome in await asyncio.gather(*runs)] == [f"{n}\n" for n in range(12)]
        assert len(remote._pool._links) == 1
    finally:
        await remote.close()
        server.stop()


async def test_the_check_of_a_good_host_measures_it(host: Host, remote: Remote) -> None:
    report = await remote.check(host)
    assert (report.ok, report.reason, report.sudo) == (True, "", None)
    assert report.fingerprint.startswith("SHA256:")
    assert report.connect_ms > 0
    assert report.run_ms > 0


async def test_the_check_tells_why_a_host_fails_and_never_raises(host: Host, remote: Remote) -> None:
    report = await remote.check(replace(host, port=free_port()))
    assert not report.ok
    assert "cannot be reached" in report.reason


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("echo 'no wrapper here'", "no wrapper here"),
        ("echo 'setsid: unrecognized option: w' >&2; exit 1", "setsid"),
    ],
)
async def test_an_account_where_the_wrapper_fails_is_refused_with_the_reason(
    tmp_path: Path, remote: Remote, shell: str, said: str
) -> None:
    async def serve(process: asyncssh.SSHServerProcess[str]) -> None:
        done = await asyncio.create_subprocess_shell(shell, stdout=-1, stderr=-1)
        out, err = await done.communicate()
        process.stdout.write(out.decode())
        process.stderr.write(err.decode())
        process.exit(done.returncode or 0)

    key, user = pair(tmp_path / "host"), pair(tmp_path / "id")
    (tmp_path / "known").write_text(f"odd {public(key)}\n")
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[key],
        process_factory=serve,
        authorized_client_keys=asyncssh.import_authorized_keys(public(user)),
    )
    odd = Host("odd", "127.0.0.1", server.get_port(), "any", tmp_path / "known", (tmp_path / "id",))
    report = await remote.check(odd)
    assert not report.ok
    assert "cannot run commands safely" in report.reason
    assert said in report.reason
    with pytest.raises(HostError, match="cannot run commands safely"):
        await remote.run(odd, "echo never", limit_s=5)
    await remote.close()
    server.close()
    await server.wait_closed()


async def test_the_accounts_ssh_config_and_agent_are_never_used(
    host: Host, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "ran"
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(f"Host *\n  ProxyCommand touch {trap}\n  Port 1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    assert (await remote.run(host, "echo direct", limit_s=9)).stdout == "direct\n"
    assert not trap.exists()
    assert os.environ["HOME"] == str(tmp_path)
