"""Pieces of patterns: what may lead a wish in, what limits it, whom it cannot be about, and what a bot can be asked to do."""

LEAD = (
    r"(?:(?:please|pls|kindly|also|and|but|so|then|ok(?:ay)?|hey|hi|btw|by the way|oh|actually|no|yes|well|thanks|right|opsthread|<@\w{1,20}>|@?bot|one more thing|(?:quick|small|little|one|short) (?:one|thing|request|note|ask|favou?r)|heads[- ]up|fyi|just|in general|generally"
    r"|you (?:should|must|can|need to|have to|may)|i(?:'d like| want| need|'d prefer| would like| expect) you to|(?:can|could|would|will) you|make sure (?:to|you|that you)|be sure to|let's|we|do)[,:]? (?:-|—)?\s?){0,5}"
)
SCOPE = r"(?:(?:on|for|in|with|when|whenever|while|before|after|if|as for|during|regarding)\b[^,]{2,80}, ?)?"
THIRD = r"(?:it|this|that|the|they|he|she|these|those|there|our|everything|nothing|everyone|nobody)"
VERB = (
    r"(?:use|answer|reply|respond|write|show|print|give|include|run|ask|check|look|tell|ping|notify|post|send|quote|format|convert|keep|start|put|add|avoid|skip"
    r"|restart|reboot|delete|remove|touch|deploy|call|mention|tag|explain|summari[sz]e|list|sort|limit|prefer|treat|assume|read|query|connect|confirm|warn|open|take|set|make|stop|begin|report|display"
    r"|talk|speak|refer|round|attach|link|paste|follow|leave|execute|do|be|have|get|go|say|let|remind|end|cc|page|bring|mark|escape|go|double-check|verify|try|switch|log|save|drop|kill|change"
    r"|modify|edit|install|upgrade|update|wake|disturb|bother|guess|trust|exceed|push|commit|scale|truncate|redirect|pipe|cut|group|return|output|state|name|cite|prefix|wrap|ssh|sudo|dump|wait|work|order|highlight|translate|address|focus|process|access|ignore|count|filter|hide|exclude|mask|collapse|trim|consider|measure|compare|watch|monitor|tail)"
)
LEAD_ZH = r"(?:(?:请|麻烦|另外|还有|那|顺便|对了|好的?|嗯|你|您|我们?|那就|就|并且|同时|再|哦|也|能不能|可不可以|可以|能否|最好|希望|希望你|记住|记得|拜托|bot|机器人|@\S{1,20})[，,：: ]{0,2}){0,5}"
# After "always" or "never" at the start of a wish any verb may stand; these words are none, or tell of the past.
ANY_VERB = (
    r"(?!(?:a|an|the|some|on|off|up|down|in|at|out|there|here|this|that|it|is|was|were|had|has|got|did|saw|seen|been|gone|done|known|heard|met|came|went|ran|took|made|knew|thought|happen|become|became"
    r"|seem|mind|again|more|less|so|too|very|good|bad|nice|fun|slow|fast|full|red|green|true|false|ready|late|right|wrong|my|our|your|their|his|her)\b)"
    r"(?!\w{1,20}(?:ing|ed|s)\b)[a-z][a-z-]{1,20}"
)
