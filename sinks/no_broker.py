"""The publisher of a process that only reads."""

from collections.abc import Sequence

from lamina.streams.errors import BrokerUnavailable
from lamina.streams.ports import Outgoing


class NoBroker:
    """Refuses to publish, and says how to get a broker."""

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Publish nothing.

        Raises:
            BrokerUnavailable: always.
        """
        raise BrokerUnavailable(
            f"{len(records)} records cannot be published: this process only reads; start `lamina up`"
        )
