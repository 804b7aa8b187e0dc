"""What a verb works with: the settings and the registry, each opened when it is first needed."""

from __future__ import annotations

import argparse
import os
from functools import cached_property
from typing import TYPE_CHECKING

from mam_core.cli.terminal import is_watched, program, say
from mam_core.cli.usage import UsageError
from mam_core.errors import StoreError
from mam_core.locations import STORE_VARIABLE

if TYPE_CHECKING:
    from mam_core.config import Config
    from mam_core.locations import Place
    from mam_core.registry import Registry


class Context:
    """The options that every verb takes, and what they lead to."""

    def __init__(
        self,
        registry_dir: str | None = None,
        config: str | None = None,
        *,
        store: str | None = None,
        allow_network_fs: bool = False,
    ) -> None:
        self.registry_dir = registry_dir
        self.store = store
        self.config = config
        self.allow_network_fs = allow_network_fs
        self._is_first = False  #: there is no registry yet

    @classmethod
    def of(cls, args: argparse.Namespace) -> Context:
        for option, value in (
            ("--registry-dir", args.registry_dir),
            ("--store", args.store),
            ("--config", args.config),
        ):
            if value == "":
                # A script's unset variable must not mean the registry that happens to be here.
                raise UsageError(f"{option} is given without a name: it is empty")
        return cls(
            args.registry_dir,
            args.config,
            store=args.store,
            allow_network_fs=args.allow_network_fs,
        )

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc: object) -> None:
        if (registry := self.__dict__.get("registry")) is not None:
            registry.store.close()
            if self._is_first and is_watched() and os.path.isdir(self.registry_path):
                say(f"new registry: {self.registry_path}")

    @property
    def names_a_registry(self) -> bool:
        """Somebody chose the registry; else it is the default, in the folder we are in."""
        return bool(self.registry_dir or self.settings.registry_dir)

    @cached_property
    def settings(self) -> Config:
        """``mam.toml`` and the environment; read once, its notices said once."""
        from mam_core.config import load

        try:
            settings = load(self.config, flags=self._flags())
        except FileNotFoundError:
            raise StoreError("the current folder was removed: go to another one first") from None
        for notice in settings.notices:
            say(notice)
        return settings

    def _flags(self) -> dict[str, str] | None:
        """What the command line says about settings. Those whom we start are told the same."""
        if self.store is None:
            return None
        from mam_core.store_urls import StoreUrl

        url = StoreUrl.parse(self.store, os.getcwd())
        if url.has_password:
            raise UsageError(
                "--store must not hold a password, which every user of this machine can read "
                "there: put it into ~/.pgpass, PGPASSWORD or [store] password_file"
            )
        os.environ[STORE_VARIABLE] = str(url)
        return {"store.url": str(url)}

    @cached_property
    def place(self) -> Place:
        """Of the registry, whether it is there or not. The documents' scripts look only where they
        are run."""
        from mam_core.locations import nearest_place, registry_place

        find = nearest_place if program() == "mam" else registry_place
        return find(self.registry_dir or self.settings.registry_dir)

    @property
    def registry_path(self) -> str:
        """The folder of the records, whether it is there or not."""
        return self.place.path

    @cached_property
    def registry(self) -> Registry:
        """Opened once; what the operator should know about its place is said once."""
        from mam_core.wiring import open_registry

        if self.place.notice:
            say(self.place.notice)
        self._is_first = not self.names_a_registry and not os.path.isdir(self.registry_path)
        path, network = self.registry_path, self.allow_network_fs
        registry = open_registry(path, config=self.settings, allow_network=network)
        if removal := registry.store.removal():
            say(f"warning: {removal}")
        return registry
